"""The training loop: epochs over a loader, a checkpoint that resumes in the middle of one, a row per epoch.

A run that is stopped and resumed ends with the same weights, bit for bit on one CPU thread, as one that is not.
"""

import time
from dataclasses import dataclass

import torch

from headrace.schemas.train_config import TrainConfig
from headrace.trainer.checkpoint import load_checkpoint, save_checkpoint
from headrace.trainer.interrupt import InterruptGuard
from headrace.trainer.loss import make_loss
from headrace.trainer.loss_meter import LossMeter
from headrace.trainer.model import LSTMModel
from headrace.trainer.protocols import Batch, Loader, Progress, Silent
from headrace.trainer.run_folder import EpochRow, RunFolder
from headrace.trainer.training_state import TrainingState
from headrace.trainer.validate import Validation, validate


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


def fit(
    model: LSTMModel,
    train_loader: Loader,
    valid_loader: Loader | None,
    settings: TrainConfig,
    run_folder: RunFolder,
    progress: Progress | None = None,
    *,
    seed: int = 0,
    amp: bool = False,
    config_digest: str = "",
    resume: bool = False,
    checkpoint_batches: int | None = None,
) -> FitResult:
    """Train a model, or go on training it.

    Parameters
    ----------
    model
        On the device to train on; with ``resume`` its weights are replaced by the checkpoint's.
    train_loader, valid_loader
        Batches to learn from, and to choose the best epoch by (None: the training loss chooses).
    settings
        Epochs, learning rate, loss, clipping, early stopping, seconds between checkpoints. Adam is the optimiser.
    run_folder
        Takes ``metrics.csv`` and ``checkpoints/``.
    progress
        Who is told how far it is.
    seed
        Seeds torch's global generator (dropout) at the start of a new run.
    amp
        Compute in bfloat16 where torch sees fit; weights and loss stay float32.
    config_digest
        Kept in the checkpoint; a resumed run must have the same.
    resume
        Go on from ``checkpoints/last.pt``.
    checkpoint_batches
        Also write a checkpoint after every so many batches of an epoch.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, when ``last.pt`` is written; a second Ctrl-C does not wait for that.
    NonFiniteLossError
        The loss is NaN or infinite; the checkpoints hold the weights from before.
    CheckpointError, StaleIndexError
        ``last.pt`` is of another configuration, model or index.
    ConfigError
        The model does not fit the loader, or no target was observed.
    """
    state = TrainingState(model, train_loader, settings, config_digest)
    progress = progress or Silent()
    with InterruptGuard() as guard:
        run = _Run(state, valid_loader, run_folder, progress, guard, amp=amp, checkpoint_batches=checkpoint_batches)
        if resume:
            state.restore(load_checkpoint(run_folder.last, map_location=state.device), run_folder.last)
        else:
            torch.manual_seed(seed)
            train_loader.set_epoch(0)
            run.save()
        try:
            while not state.finished:
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


class _Run:
    """Takes a :class:`TrainingState` through its epochs."""

    def __init__(
        self,
        state: TrainingState,
        valid_loader: Loader | None,
        folder: RunFolder,
        progress: Progress,
        guard: InterruptGuard,
        *,
        amp: bool,
        checkpoint_batches: int | None,
    ) -> None:
        self._state = state
        self._valid_loader = valid_loader
        self._folder = folder
        self._progress = progress
        self._guard = guard
        self._amp = amp
        self._checkpoint_batches = checkpoint_batches
        self._loss = make_loss(state.settings.loss, state.loader)
        self._saved_at = time.monotonic()

    def save(self) -> None:
        """Write ``last.pt``."""
        save_checkpoint(self._folder.last, self._state.checkpoint())
        self._saved_at = time.monotonic()

    def stop_if_asked(self) -> None:
        """After Ctrl-C: write ``last.pt`` and raise KeyboardInterrupt."""
        if self._guard.requested:
            self.save()
            raise KeyboardInterrupt

    def one_epoch(self) -> None:
        """Train, validate, write the row and the checkpoints."""
        state = self._state
        title = f"epoch {state.epoch + 1}/{state.settings.train_epochs}"
        learning_rate = state.set_learning_rate()
        meter = LossMeter(state.loader, self._loss, state.sums, f"{title}, training")
        # An epoch resumed behind its last batch has nothing left to iterate, and a loader may take that for the next.
        if not state.epoch_trained and state.sums.num_batches < len(state.loader):
            self._train_pass(meter, title)
        state.epoch_trained = True
        train_loss = meter.final_loss()
        started = time.perf_counter()
        validation = self._validate(title)
        train_seconds = state.sums.wait_seconds + state.sums.compute_seconds
        row = EpochRow(
            epoch=state.epoch,
            train_loss=train_loss,
            valid_loss=None if validation is None else validation.loss,
            valid_nse_median=None if validation is None else validation.nse_median,
            learning_rate=learning_rate,
            samples_per_second=state.sums.num_windows / train_seconds,
            data_wait_seconds=state.sums.wait_seconds / state.sums.num_batches,
            compute_seconds=state.sums.compute_seconds / state.sums.num_batches,
            seconds=train_seconds + time.perf_counter() - started,
        )
        # Row, best, last: killed in between, a resumed run does the epoch again and replaces the first two.
        self._folder.record_epoch(row)
        if state.close_epoch(train_loss if validation is None else validation.loss):
            save_checkpoint(self._folder.best, state.checkpoint())
        self.save()
        self._progress.finish(summarize(title, row))

    def _train_pass(self, meter: LossMeter, title: str) -> None:
        state, sums = self._state, self._state.sums
        earlier_seconds, earlier_wait = sums.wait_seconds + sums.compute_seconds, sums.wait_seconds
        earlier_windows, done = sums.num_windows, sums.num_batches
        self._progress.begin(title, len(state.loader), done)
        state.model.train()
        batches = iter(state.loader)
        clock = time.perf_counter()
        while True:
            host_batch = next(batches, None)
            arrived = time.perf_counter()
            sums.wait_seconds += arrived - clock
            if host_batch is None:
                break
            self._train_batch(host_batch.to(state.device), meter)
            done += 1
            clock = time.perf_counter()
            sums.compute_seconds += clock - arrived
            seconds = sums.wait_seconds + sums.compute_seconds - earlier_seconds
            self._progress.update(
                done,
                loss=meter.loss(),
                samples_per_second=(sums.num_windows - earlier_windows) / seconds,
                wait_share=(sums.wait_seconds - earlier_wait) / seconds,
            )
            every = self._checkpoint_batches
            due = time.monotonic() - self._saved_at >= state.settings.checkpoint_seconds
            if self._guard.requested or due or (every is not None and done % every == 0):
                meter.flush()
                self.stop_if_asked()
                self.save()
        meter.flush()
        self._progress.finish()

    def _train_batch(self, batch: Batch, meter: LossMeter) -> None:
        state = self._state
        state.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(state.device.type, dtype=torch.bfloat16, enabled=self._amp):
            predicted = state.model(batch.x, batch.static, state.loader.window.target_length)
        mean_square, count = self._loss.mean_square(predicted.float(), batch)
        torch.autograd.backward(self._loss.finish(mean_square))
        limit = state.settings.clip_gradient_norm
        norm = torch.nn.utils.clip_grad_norm_(state.model.parameters(), float("inf") if limit is None else limit)
        # Before the step: on the CPU a gradient that is not finite never reaches the weights.
        meter.add(batch, mean_square, count, norm)
        state.optimizer.step()

    def _validate(self, title: str) -> Validation | None:
        if self._valid_loader is None:
            return None
        return validate(
            self._state.model,
            self._valid_loader,
            make_loss(self._state.settings.loss, self._valid_loader),
            amp=self._amp,
            progress=self._progress,
            task=f"{title}, validation",
            between_batches=self.stop_if_asked,
        )


def summarize(title: str, row: EpochRow) -> str:
    """Return an epoch's row as one line for a person."""
    parts = [title, f"train loss {row.train_loss:.4f}"]
    if row.valid_loss is not None and row.valid_nse_median is not None:
        parts += [f"valid loss {row.valid_loss:.4f}", f"valid NSE median {row.valid_nse_median:.3f}"]
    waiting = row.data_wait_seconds / (row.data_wait_seconds + row.compute_seconds)
    parts += [f"{row.samples_per_second:,.0f} windows/s", f"waiting {waiting:.1%}", f"{row.seconds:.1f} s"]
    return "  ".join(parts)
