"""Who follows a training run: how busy the GPU is, whether the model waits for data and what to do, TensorBoard."""

import os

from headrace.loader import WindowLoader
from headrace.loader.advice import Waiting
from headrace.loader.utilization import UtilizationSampler
from headrace.trainer.launch import processes_here
from headrace.trainer.run_folder import EpochRow
from headrace.trainer.tensorboard import TensorBoardLog

MUCH_WAITING = 0.2
"""Share of a training pass spent waiting for data from which on something is said about it."""


class RunWatcher:
    """A :class:`headrace.trainer.protocols.Watcher` over a loader.

    Parameters
    ----------
    loader
        The training loader.
    log
        Takes each row as well, or None.
    """

    def __init__(self, loader: WindowLoader, log: TensorBoardLog | None) -> None:
        self._loader, self._log = loader, log
        self._first_pass, self._said = True, ""

    def utilization(self) -> UtilizationSampler:
        """Return what watches the loader's GPU; on the CPU it says nothing."""
        return UtilizationSampler.of(self._loader.device)

    def epoch_done(self, row: EpochRow) -> str | None:
        """Keep the row; return what to change where the model waits much, unless the epoch before was told the same."""
        if self._log is not None:
            self._log.write(row)
        first_pass, self._first_pass = self._first_pass, False
        share = row.data_wait_seconds / (row.data_wait_seconds + row.compute_seconds)
        if share < MUCH_WAITING:
            return None
        loader = self._loader
        remedy = Waiting(
            num_workers=loader.num_workers, num_threads=(os.cpu_count() or 1) // processes_here(),
            resident=loader.resident, bytes_read=loader.bytes_read, chunks_read=loader.chunks_read,
            first_pass=first_pass,
        ).remedy("later epochs wait less")  # fmt: skip
        said, self._said = self._said, remedy
        return None if said == remedy else f"Waiting for data took {share:.0%} of the epoch: {remedy}"
