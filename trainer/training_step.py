"""One step of training: forward, loss of the global batch, backward, clipping, optimiser."""

from collections.abc import Callable

import torch
from torch import nn

from headrace.schemas.errors import describe
from headrace.schemas.train_config import TrainConfig
from headrace.trainer.interrupt import NoBatchError
from headrace.trainer.loss import Loss, make_loss, mean_of
from headrace.trainer.loss_meter import NonFiniteLossError, totals_of
from headrace.trainer.model import SequenceModel, build_model
from headrace.trainer.model_config import model_config_for
from headrace.trainer.precision import Precision, choose_precision
from headrace.trainer.protocols import Batch, Loader
from headrace.trainer.ranks import Ranks

LEAST_SCALE = 2.0**-14
"""Scale of a float16 loss below which its gradients are taken to overflow whatever is done; it begins at 2¹⁶."""
Watch = Callable[[torch.Tensor, torch.Tensor | None], None]
"""Is given the sums of the global batch, float64 [6], and the gradient's norm, before the weights change; may raise."""


class TrainingStep:
    """Train a model by one batch per call.

    With several ranks the loss is that of the global batch: the mean over all its observed targets (by weight), or a
    function of it, never a mean of the ranks' means. Its gradient is that of one process with the whole batch.

    Parameters
    ----------
    model
        What is trained.
    optimizer
        Of its parameters.
    loss
        What is lessened.
    target_length
        P, target steps of a window.
    clip
        Longest gradient; None leaves it.
    precision
        Format of the forward pass.
    ranks
        The processes that train together.
    """

    def __init__(
        self,
        model: SequenceModel,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        *,
        target_length: int,
        clip: float | None,
        precision: Precision,
        ranks: Ranks | None = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.scaler = precision.scaler()
        self._loss = loss
        self._target_length = target_length
        self._clip = float("inf") if clip is None else clip
        self._precision = precision
        self._ranks = ranks or Ranks()
        self._module: nn.Module = model
        if self._ranks.size > 1:
            self._module = nn.parallel.DistributedDataParallel(model)

    def __call__(
        self, batch: Batch, watch: Watch = lambda totals, norm: None, *,
        stop: bool = False, save: bool = False, lacking: bool = False,
    ) -> None:  # fmt: skip
        """Take one step.

        Parameters
        ----------
        batch
            This rank's share of the global batch; may hold no window.
        watch
            Called before the weights change.
        stop, save
            What this rank asks all of them to do; goes into the sums.
        lacking
            Whether it has no batch, on a CPU.

        Raises
        ------
        NoBatchError
            Some rank has no batch: no rank has taken the step, and none has drawn for its dropout.
        """
        together = self._ranks.size > 1 and batch.x.device.type == "cpu"
        drawn = torch.get_rng_state() if together else None
        self.optimizer.zero_grad(set_to_none=True)
        with self._precision.autocast():
            predicted = self._module(batch.x, batch.static, self._target_length)
        error, weight = self._loss.add_up(predicted, batch)
        totals = totals_of(error, weight, batch, self._ranks, stop=stop, save=save, lacking=lacking)
        if drawn is not None and totals[-1] > 0:
            torch.set_rng_state(drawn)
            raise NoBatchError
        torch.autograd.backward(self.scaler.scale(self._objective(error, weight, totals)))
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self._clip)
        # A scaler expects gradients that are not finite: it leaves out the step and tries a smaller scale.
        watch(totals, None if self.scaler.is_enabled() else norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def check_scale(self, where: str) -> None:
        """Refuse to go on where float16 gradients overflow at any scale: no step would ever be taken.

        Raises
        ------
        NonFiniteLossError
            They do; ``where`` names the pass.
        """
        if self.scaler.is_enabled() and self.scaler.get_scale() < LEAST_SCALE:
            raise NonFiniteLossError(
                describe(
                    "gradients overflow in float16 at any scale of the loss",
                    where=where,
                    expected=f"finite gradients at a scale of {LEAST_SCALE:g} or more",
                    got=f"none, down to a scale of {self.scaler.get_scale():g}",
                    fix="use --amp (bfloat16) or --no-amp, or lower train.learning_rate",
                )
            )

    def _objective(self, error: torch.Tensor, weight: torch.Tensor, totals: torch.Tensor) -> torch.Tensor:
        """Return what to differentiate: the loss, so that the mean over ranks of its gradients is the right one."""
        if self._ranks.size == 1:
            return self._loss.finish(mean_of(error, weight))
        share = mean_of(error, totals[1])
        # The value of the global mean with the derivative of this rank's share of it.
        mean = share + (mean_of(totals[0], totals[1]).to(share.dtype) - share).detach()
        return self._loss.finish(mean) * self._ranks.size


def fresh_step(loader: Loader, settings: TrainConfig, device: str | torch.device, seed: int) -> TrainingStep:
    """Return the step of a fresh model, as a benchmark times it.

    Parameters
    ----------
    loader
        Where the batches come from: decides the shape of the model and the scales of the loss.
    settings
        Model, loss, precision, learning rate and clipping.
    device
        Where the batches are.
    seed
        Of the first weights.
    """
    shape = model_config_for(loader, settings)
    model = build_model(shape, seed=seed).to(device).train()
    return TrainingStep(
        model,
        torch.optim.Adam(model.parameters(), lr=settings.learning_rate),
        make_loss(settings, loader),
        target_length=loader.window.target_length,
        clip=settings.clip_gradient_norm,
        precision=choose_precision(settings, shape, device),
    )
