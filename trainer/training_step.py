"""One step of training, forward, backward and optimiser, on its own: what a benchmark times as compute."""

import torch

from headrace.schemas.train_config import TrainConfig
from headrace.trainer.loss import make_loss
from headrace.trainer.model import ModelConfig, build_model
from headrace.trainer.protocols import Batch, Loader


class TrainingStep:
    """Train a fresh model by one batch per call.

    Parameters
    ----------
    loader
        Where the batches come from: decides the shape of the model and the scales of the loss.
    settings
        Width, dropout, loss, learning rate and clipping.
    device
        Where the batches are.
    seed
        Of the first weights.
    """

    def __init__(self, loader: Loader, settings: TrainConfig, device: str | torch.device, seed: int) -> None:
        shape = ModelConfig(
            num_inputs=len(loader.x_names),
            num_statics=len(loader.static_names),
            num_targets=len(loader.y_names),
            hidden_size=settings.hidden_size,
            dropout=settings.dropout,
            initial_forget_bias=settings.initial_forget_bias,
        )
        self.model = build_model(shape, seed=seed).to(device).train()
        self._target_length = loader.window.target_length
        self._loss = make_loss(settings.loss, loader)
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.learning_rate)
        self._limit = settings.clip_gradient_norm

    def __call__(self, batch: Batch) -> None:
        """Take one step."""
        self._optimizer.zero_grad(set_to_none=True)
        predicted = self.model(batch.x, batch.static, self._target_length)
        mean_square, _ = self._loss.mean_square(predicted, batch)
        torch.autograd.backward(self._loss.finish(mean_square))
        if self._limit is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._limit)
        self._optimizer.step()
