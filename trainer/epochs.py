"""Epochs one after the other: training pass, validation, row, checkpoints.

Ranks take every decision together: what one of them is asked, to stop or to save, goes into the sums of the next batch.
"""

import math
import time

from headrace.trainer.checkpoint import save_checkpoint
from headrace.trainer.interrupt import InterruptGuard, NoBatchError
from headrace.trainer.learning_rate import changes_by_batch, learning_rate_at
from headrace.trainer.loss import make_loss
from headrace.trainer.loss_meter import LossMeter
from headrace.trainer.protocols import Batch, Loader, Progress, Watcher
from headrace.trainer.run_folder import EpochRow, RunFolder
from headrace.trainer.training_state import TrainingState
from headrace.trainer.validate import Validation, validate


class EpochRunner:
    """Takes a :class:`TrainingState` through its epochs.

    Parameters
    ----------
    state
        Where the run is.
    valid_loader
        Serves what the best epoch is chosen by, or None.
    folder
        Takes ``metrics.csv`` and ``checkpoints/``; rank 0 writes.
    progress
        Who is told.
    guard
        Knows of Ctrl-C.
    checkpoint_batches
        Also write a checkpoint after every so many batches of an epoch.
    watcher
        Follows the epochs.
    """

    def __init__(
        self,
        state: TrainingState,
        valid_loader: Loader | None,
        folder: RunFolder,
        progress: Progress,
        guard: InterruptGuard,
        *,
        checkpoint_batches: int | None,
        watcher: Watcher,
    ) -> None:
        self._state = state
        self._ranks = state.ranks
        self._valid_loader = valid_loader
        self._folder = folder
        self._progress = progress
        self._guard = guard
        self._checkpoint_batches = checkpoint_batches
        self._watcher = watcher
        self._valid_loss = None if valid_loader is None else make_loss(state.settings, valid_loader)
        self._saved_at = time.monotonic()

    def save(self) -> None:
        """Write ``last.pt``; all ranks call it."""
        checkpoint = self._state.checkpoint()
        if self._ranks.first:
            save_checkpoint(self._folder.last, checkpoint)
        self._saved_at = time.monotonic()

    def stop_if_asked(self) -> None:
        """After Ctrl-C on some rank: write ``last.pt`` and raise KeyboardInterrupt."""
        self._stop_if(asked=self._ranks.any(value=self._guard.requested))

    def one_epoch(self) -> None:
        """Train, validate, write the row and the checkpoints."""
        state = self._state
        title = f"epoch {state.epoch + 1}/{state.settings.train_epochs}"
        meter = LossMeter(state.loader, state.loss, state.sums, f"{title}, training", self._ranks)
        with self._watcher.utilization() as gpu:
            if not state.epoch_trained:
                self._train_pass(meter, title)
                state.step.check_scale(f"{title}, training")
        state.epoch_trained = True
        train_loss = meter.final_loss()
        started = time.perf_counter()
        validation = self._validate(title)
        nse = math.nan if validation is None else validation.nse_median
        train_seconds = state.sums.wait_seconds + state.sums.compute_seconds
        row = EpochRow(
            epoch=state.epoch,
            train_loss=train_loss,
            valid_loss=None if validation is None else validation.loss,
            valid_nse_median=None if math.isnan(nse) else nse,
            learning_rate=learning_rate_at(state.settings, state.epoch, 1.0),
            samples_per_second=state.sums.num_windows / train_seconds,
            data_wait_seconds=state.sums.wait_seconds / state.sums.num_batches,
            compute_seconds=state.sums.compute_seconds / state.sums.num_batches,
            gpu_util_percent=gpu.mean,
            seconds=train_seconds + time.perf_counter() - started,
        )
        # Row, best, watcher, last: killed in between, a resumed run does the epoch again and replaces all of them.
        if self._ranks.first:
            self._folder.record_epoch(row)
        if state.close_epoch(train_loss if validation is None else validation.loss):
            best = state.checkpoint()
            if self._ranks.first:
                save_checkpoint(self._folder.best, best)
        remark = self._watcher.epoch_done(row)
        self.save()
        self._progress.finish(summarize(title, row))
        if remark is not None:
            self._progress.finish(remark)

    def _train_pass(self, meter: LossMeter, title: str) -> None:
        state, sums = self._state, self._state.sums
        earlier_seconds, earlier_wait = sums.wait_seconds + sums.compute_seconds, sums.wait_seconds
        earlier_windows, done = sums.num_windows, sums.num_batches
        moves = changes_by_batch(state.settings)
        share = state.share_served()
        state.set_learning_rate(share)
        self._progress.begin(title, len(state.loader), min(done, len(state.loader)))
        state.model.train()
        batches = self._guard.batches(state.loader)
        clock = time.perf_counter()
        while True:
            try:
                host_batch = next(batches, None)
            except NoBatchError:
                meter.flush()
                self._stop_if(asked=True)
                raise
            arrived = time.perf_counter()
            sums.wait_seconds += arrived - clock
            if host_batch is None:
                break
            if moves:
                before, share = share, state.share_served()
                state.set_learning_rate(before, share)
            try:
                self._train_batch(host_batch.to(state.device), meter)
            except NoBatchError:
                self._stop_if(asked=True)
                raise
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
            self._save_if_due(meter, done)
        meter.flush()
        self._progress.finish()

    def _train_batch(self, batch: Batch, meter: LossMeter) -> None:
        # Before the step: on the CPU a gradient that is not finite never reaches the weights.
        self._state.step(
            batch,
            lambda totals, norm: meter.add(batch, totals, norm),
            stop=self._guard.requested,
            save=self._ranks.first and self._due(),
            lacking=self._guard.lacks_batch,
        )

    def _save_if_due(self, meter: LossMeter, done: int) -> None:
        """Write ``last.pt`` when it is time, or Ctrl-C came; ranks go by what all of them have heard."""
        alone, every = self._ranks.size == 1, self._checkpoint_batches
        stop = self._guard.requested if alone else meter.stop_asked
        due = self._due() if alone else meter.save_asked
        if stop or due or (every is not None and done % every == 0):
            meter.flush()
            self._stop_if(asked=stop)
            self.save()
            meter.save_asked = False

    def _due(self) -> bool:
        return time.monotonic() - self._saved_at >= self._state.settings.checkpoint_seconds

    def _stop_if(self, *, asked: bool) -> None:
        if asked:
            self.save()
            raise KeyboardInterrupt

    def _validate(self, title: str) -> Validation | None:
        if self._valid_loader is None or self._valid_loss is None:
            return None
        try:
            return validate(
                self._state.model,
                self._valid_loader,
                self._valid_loss,
                precision=self._state.precision,
                ranks=self._ranks,
                progress=self._progress,
                task=f"{title}, validation",
                guard=self._guard,
                stop=lambda: self._stop_if(asked=True),
            )
        except NoBatchError:
            self._stop_if(asked=True)
            raise


def summarize(title: str, row: EpochRow) -> str:
    """Return an epoch's row as one line for a person."""
    parts = [title, f"train loss {row.train_loss:.4f}"]
    if row.valid_loss is not None:
        nse = row.valid_nse_median
        parts.append(f"valid loss {row.valid_loss:.4f}")
        parts.append("valid NSE undefined" if nse is None else f"valid NSE median {nse:.3f}")
    waiting = row.data_wait_seconds / (row.data_wait_seconds + row.compute_seconds)
    parts += [f"{row.samples_per_second:,.0f} windows/s", f"waiting {waiting:.1%}"]
    if row.gpu_util_percent is not None:
        parts.append(f"GPU {row.gpu_util_percent:.0f} %")
    parts.append(f"{row.seconds:.1f} s")
    return "  ".join(parts)
