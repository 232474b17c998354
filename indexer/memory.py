"""Memory of tasks: known before they start, and never more at once on a worker than it has.

A worker that Dask started with a memory limit is paused or ended by Dask above a share of it, so tasks wait here for
each other instead; one that could never run is refused.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from distributed import Worker, get_worker

from headrace.schemas.errors import ConfigError, SourceError, describe

MEMORY_SHARE = 0.8
"""Share of its limit above which Dask pauses a worker (``distributed.worker.memory.pause``)."""

OWN_NBYTES = 300_000_000
"""What a worker takes for itself, libraries loaded and compiled; with too little room Dask pauses it for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """What a worker says about itself before it gets tasks.

    Parameters
    ----------
    room
        Bytes that tasks may take; None without a limit.
    lacking
        Those of the given paths that it does not see.
    """

    room: int | None
    lacking: tuple[str, ...]


def report(paths: Sequence[str], dask_worker: Worker | None = None) -> WorkerReport:
    """Look around; runs on a worker, and by its import loads there whatever tasks need."""
    room = None if dask_worker is None else _room(dask_worker, own_nbytes=OWN_NBYTES)
    return WorkerReport(room=room, lacking=tuple(p for p in paths if not Path(p).is_dir()))


def _room(worker: Worker, own_nbytes: int = 0) -> int | None:
    """Return the bytes that tasks may take beside what the process holds, at least ``own_nbytes``; None: no limit."""
    limit = getattr(worker.memory_manager, "memory_limit", None)
    held = max(int(psutil.Process().memory_info().rss), own_nbytes)
    return int(MEMORY_SHARE * limit) - held if limit else None


def refuse_if_larger(task_nbytes: int, room: int | None, where: str) -> None:
    """Refuse a task that does not fit.

    Raises
    ------
    SourceError
        It needs more than there is room for.
    """
    if room is not None and task_nbytes > room:
        raise SourceError(
            describe(
                "largest chunk does not fit into memory",
                where=where,
                expected=f"{task_nbytes:,} bytes for one task (its chunks as stored, decoded, and once more)",
                got=f"{max(room, 0):,} bytes for tasks",
                fix="give workers more memory, or write the store with smaller chunks",
            )
        )


def check_reports(reports: dict[str, WorkerReport], *, task_nbytes: int) -> None:
    """Refuse to start on workers that cannot do it.

    Raises
    ------
    ConfigError
        A worker does not see a store or the output folder.
    SourceError
        A worker has too little memory for the largest task.
    """
    for address, found in sorted(reports.items()):
        if found.lacking:
            raise ConfigError(
                describe(
                    "worker does not see a folder",
                    where=f"worker {address}",
                    expected="stores and --out under the same paths as here",
                    got=f"no folder {', '.join(found.lacking[:4])}",
                    fix="mount the disk on every worker, or use paths that all of them share",
                )
            )
        refuse_if_larger(task_nbytes, found.room, f"worker {address}")


class _Gate:
    """Lets tasks of this process in while their memory together fits."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._room: int | None = None
        self._taken = 0

    @contextmanager
    def entered(self, nbytes: int) -> Iterator[None]:
        """Wait for room, hold it, and give it back."""
        worker = get_worker()
        with self._free:
            if self._taken == 0:
                self._room = _room(worker)
            refuse_if_larger(nbytes, self._room, f"worker {worker.address}")
            self._free.wait_for(lambda: self._room is None or self._taken + nbytes <= self._room)
            self._taken += nbytes
        try:
            yield
        finally:
            with self._free:
                self._taken -= nbytes
                self._free.notify_all()


gate = _Gate()
"""One for each process."""
