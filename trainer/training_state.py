"""What changes while a run goes on, how it becomes a checkpoint, and how it comes back from one."""

from pathlib import Path
from typing import Any

import torch

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.train_config import TrainConfig
from headrace.trainer.checkpoint import Checkpoint, EpochSums, check_loader, check_same_run
from headrace.trainer.learning_rate import learning_rate_at
from headrace.trainer.loss import make_loss
from headrace.trainer.model import SequenceModel
from headrace.trainer.precision import choose_precision
from headrace.trainer.protocols import Loader
from headrace.trainer.ranks import Ranks
from headrace.trainer.training_step import TrainingStep

_SEEDS_APART = 1_000_003
"""Between the seeds of two ranks; rank 0 has the configured one."""


class TrainingState:
    """A model in training, its optimiser, and the place in the epochs.

    Parameters
    ----------
    model
        On the device to train on.
    loader
        The training loader.
    settings
        Learning rates, number of epochs, early stopping, loss, precision.
    config_digest
        Digest of the run's configuration.
    ranks
        The processes that train together.

    Attributes
    ----------
    step
        Trains the model by one batch; has the optimiser, which is Adam.
    epoch
        Epoch in progress, counted from 0.
    sums
        What its batches have added up to.
    epoch_trained
        True when its last batch is done and its validation is not.
    best_metric, best_epoch
        Lowest loss so far and its epoch; None before the first.
    """

    def __init__(
        self, model: SequenceModel, loader: Loader, settings: TrainConfig, config_digest: str, ranks: Ranks
    ) -> None:
        _check_model(model, loader)
        self.model = model
        self.device = next(model.parameters()).device
        self.loader = loader
        self.settings = settings
        self.config_digest = config_digest
        self.ranks = ranks
        self.precision = choose_precision(settings, model.config, self.device)
        self.loss = make_loss(settings, loader)
        self.step = TrainingStep(
            model,
            torch.optim.Adam(model.parameters(), lr=settings.learning_rate),
            self.loss,
            target_length=loader.window.target_length,
            clip=settings.clip_gradient_norm,
            precision=self.precision,
            ranks=ranks,
        )
        self.epoch = 0
        self.sums = EpochSums()
        self.epoch_trained = False
        self.best_metric: float | None = None
        self.best_epoch: int | None = None

    @property
    def stopped_early(self) -> bool:
        """Whether the loss has not fallen for ``early_stopping_epochs`` epochs."""
        patience = self.settings.early_stopping_epochs
        return patience is not None and self.best_epoch is not None and self.epoch - 1 - self.best_epoch >= patience

    @property
    def finished(self) -> bool:
        """Whether no epoch is left to do."""
        return self.epoch >= self.settings.train_epochs or self.stopped_early

    def set_learning_rate(self, begin: float = 0.0, end: float | None = None) -> None:
        """Give the optimiser the learning rate of a batch; see :func:`learning_rate_at`."""
        rate = learning_rate_at(self.settings, self.epoch, begin, end)
        for group in self.step.optimizer.param_groups:
            group["lr"] = rate

    def share_served(self) -> float:
        """Return the share of the epoch's windows, of all ranks, that the loader has handed out."""
        served = self.loader.state_dict()
        return float(served["windows_consumed"] / served["epoch_windows"])

    def seed(self, seed: int) -> None:
        """Seed torch's global generator (dropout), on each rank otherwise."""
        torch.manual_seed((seed + self.ranks.rank * _SEEDS_APART) % 2**63)

    def close_epoch(self, metric: float) -> bool:
        """Go to the next epoch; return whether the one that ends is the best so far.

        Parameters
        ----------
        metric
            Its validation loss, or its training loss without validation.
        """
        improved = self.best_metric is None or metric < self.best_metric
        if improved:
            self.best_metric, self.best_epoch = metric, self.epoch
        self.epoch += 1
        self.sums = EpochSums()
        self.epoch_trained = False
        self.loader.set_epoch(self.epoch)
        return improved

    def checkpoint(self) -> Checkpoint:
        """Return the state as it is; its tensors are the live ones, to be written at once. All ranks call it."""
        return Checkpoint(
            model_config=self.model.config,
            x_names=list(self.loader.x_names),
            static_names=list(self.loader.static_names),
            y_names=list(self.loader.y_names),
            target_length=self.loader.window.target_length,
            model=self.model.state_dict(),
            optimizer=self.step.optimizer.state_dict(),
            scaler=self.step.scaler.state_dict(),
            rng=self.ranks.gather(_rng_state(self.device)),
            epoch=self.epoch,
            sums=self.sums,
            epoch_trained=self.epoch_trained,
            # A rank that has a batch of which another one lacks its part has not learned from it.
            loader_state=min(self.ranks.gather(self.loader.state_dict()), key=lambda at: at["windows_consumed"]),
            best_metric=self.best_metric,
            best_epoch=self.best_epoch,
            config_digest=self.config_digest,
            index_digest=self.loader.index_digest,
        )

    def restore(self, checkpoint: Checkpoint, path: Path, seed: int) -> None:
        """Go to where a checkpoint was taken; ``path`` names it in an error.

        ``seed`` seeds the generators of ranks that the run did not have then.

        Raises
        ------
        CheckpointError, StaleIndexError
            It is of another configuration, index or set of variables.
        ConfigError
            The model has another shape.
        """
        check_same_run(path, checkpoint, config_digest=self.config_digest, index_digest=self.loader.index_digest)
        check_loader(checkpoint, self.loader, str(path))
        if checkpoint.model_config != self.model.config:
            raise ConfigError(
                describe(
                    "the model has another shape than the checkpoint's",
                    where=str(path),
                    expected=str(checkpoint.model_config),
                    got=str(self.model.config),
                    fix="resume with the run's own settings, or start a new run in another folder",
                )
            )
        self.model.load_state_dict(checkpoint.model)
        self.step.optimizer.load_state_dict(checkpoint.optimizer)
        self.step.scaler.load_state_dict(checkpoint.scaler)
        self.epoch, self.sums, self.epoch_trained = checkpoint.epoch, checkpoint.sums, checkpoint.epoch_trained
        self.best_metric, self.best_epoch = checkpoint.best_metric, checkpoint.best_epoch
        self.loader.load_state_dict(checkpoint.loader_state)
        if self.ranks.rank >= len(checkpoint.rng):
            self.seed(seed)
            return
        own = checkpoint.rng[self.ranks.rank]
        torch.set_rng_state(own["cpu"])
        if self.device.type == "cuda" and len(own["cuda"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(own["cuda"])


def _rng_state(device: torch.device) -> dict[str, Any]:
    return {
        "cpu": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if device.type == "cuda" else [],
    }


def _check_model(model: SequenceModel, loader: Loader) -> None:
    expected = (len(loader.x_names), len(loader.static_names), len(loader.y_names))
    got = (model.config.num_inputs, model.config.num_statics, model.config.num_targets)
    if expected != got:
        raise ConfigError(
            describe(
                "the model does not fit the loader",
                where="number of inputs, statics, targets",
                expected=str(expected),
                got=str(got),
                fix="build the model with the lengths of the loader's x_names, static_names and y_names",
            )
        )
