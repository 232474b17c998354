"""The training loop: epochs over a loader, a checkpoint that resumes in the middle of one, a row per epoch.

A run that is stopped and resumed ends with the same weights, bit for bit on one CPU thread, as one that is not.
"""

from dataclasses import dataclass

from headrace.old_objects import old_objects_spared
from headrace.schemas.train_config import TrainConfig
from headrace.trainer.checkpoint import load_checkpoint
from headrace.trainer.device import memory_named
from headrace.trainer.epochs import EpochRunner
from headrace.trainer.interrupt import InterruptGuard
from headrace.trainer.model import SequenceModel
from headrace.trainer.protocols import Loader, Progress, Silent, Unwatched, Watcher
from headrace.trainer.ranks import Ranks
from headrace.trainer.run_folder import RunFolder
from headrace.trainer.training_state import TrainingState


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """How a run ended.

    Parameters
    ----------
    num_epochs
        Epochs finished, over all resumptions.
    best_epoch
        Epoch, counted from 0, whose weights ``checkpoints/best.pt`` holds.
    best_loss
        Its validation loss, or its training loss without validation.
    stopped_early
        True when the loss stopped falling before ``train_epochs``.
    """

    num_epochs: int
    best_epoch: int
    best_loss: float
    stopped_early: bool


@old_objects_spared(collect=True)
def fit(
    model: SequenceModel,
    train_loader: Loader,
    valid_loader: Loader | None,
    settings: TrainConfig,
    run_folder: RunFolder,
    progress: Progress | None = None,
    *,
    seed: int = 0,
    config_digest: str = "",
    resume: bool = False,
    checkpoint_batches: int | None = None,
    watcher: Watcher | None = None,
) -> FitResult:
    """Train a model, or go on training it.

    Inside an initialised torch.distributed group all ranks call it, each with its own loaders' share of the same
    batches; rank 0 alone writes to ``run_folder``.

    Parameters
    ----------
    model
        On the device to train on; with ``resume`` its weights are replaced by the checkpoint's.
    train_loader, valid_loader
        Batches to learn from, and to choose the best epoch by (None: the training loss chooses).
    settings
        Epochs, learning rate, loss, precision, clipping, early stopping, seconds between checkpoints. Adam is the
        optimiser.
    run_folder
        Takes ``metrics.csv`` and ``checkpoints/``.
    progress
        Who is told how far it is.
    seed
        Seeds torch's global generator (dropout) at the start of a new run, on each rank otherwise.
    config_digest
        Kept in the checkpoint; a resumed run must have the same.
    resume
        Go on from ``checkpoints/last.pt``.
    checkpoint_batches
        Also write a checkpoint after every so many batches of an epoch.
    watcher
        Who follows the epochs.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, when ``last.pt`` is written; a second Ctrl-C does not wait for that.
    NonFiniteLossError
        The loss is NaN or infinite; the checkpoints hold the weights from before.
    CheckpointError, StaleIndexError
        ``last.pt`` is of another configuration, model or index.
    ConfigError
        The model does not fit the loader, no target was observed, or torch lacks the precision.
    DeviceMemoryError
        The GPU has too little memory.
    RankLostError
        Another rank has ended.
    """
    ranks = Ranks.current()
    state = TrainingState(model, train_loader, settings, config_digest, ranks)
    progress = progress or Silent()
    alone, on_cpu = ranks.size == 1, state.device.type == "cpu"
    with InterruptGuard(alone=alone, patient=not (alone or on_cpu)) as guard:
        run = EpochRunner(
            state, valid_loader, run_folder, progress, guard, checkpoint_batches=checkpoint_batches,
            watcher=watcher or Unwatched(),
        )  # fmt: skip
        if resume:
            checkpoint = ranks.from_first(lambda: load_checkpoint(run_folder.last))
            state.restore(checkpoint, run_folder.last, seed)
        else:
            state.seed(seed)
            train_loader.set_epoch(0)
            run.save()
        try:
            while not state.finished:
                with memory_named("training"):
                    run.one_epoch()
                if not state.finished:
                    run.stop_if_asked()
        finally:
            progress.finish()
    assert state.best_epoch is not None, "at least one epoch is done"
    assert state.best_metric is not None, "at least one epoch is done"
    return FitResult(
        num_epochs=state.epoch,
        best_epoch=state.best_epoch,
        best_loss=state.best_metric,
        stopped_early=state.epoch < settings.train_epochs,
    )
