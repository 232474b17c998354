"""Ctrl-C, or the end that a job scheduler announces, between batches instead of in the middle of one.

What is saved is whole then. SLURM, Kubernetes and Docker send SIGTERM and kill half a minute later or so.
"""

import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Final

from headrace.trainer.absent_batch import absent_batch
from headrace.trainer.protocols import Batch, Loader

_PATIENCE_SECONDS: Final = 1.0
"""How long a batch is waited for once a run was asked to stop; what it waits for may be silent for long."""
_LOOK_SECONDS: Final = 0.1
"""How often it is looked whether that is over."""


class NoBatchError(RuntimeError):
    """A run was asked to stop while it, or another rank, waited for a batch, and none came in a moment."""


class InterruptGuard:
    """While open, the first Ctrl-C or SIGTERM only sets :attr:`requested`; the second one raises at once.

    Outside the main thread, where Python delivers no signals, it does nothing.

    Parameters
    ----------
    alone
        Whether this process trains alone. One of several leaves SIGTERM as it is: their launcher sends it when one of
        them is gone, and no checkpoint can be agreed on any more.
    patient
        Whether a batch is waited for however long. So it is with several ranks on GPUs, where one that does not take
        its step stops the others in the middle of theirs.

    Attributes
    ----------
    requested
        Whether this process was asked to stop.
    lacks_batch
        Whether it gave up waiting for a batch and goes on with one of no window, to tell the other ranks.
    """

    def __init__(self, *, alone: bool, patient: bool = False) -> None:
        self.requested = self.lacks_batch = False
        self._alone, self._patient = alone, patient
        self._awaited: tuple[float, Loader] | None = None
        self._ended = threading.Event()
        self._guards = threading.current_thread() is threading.main_thread()
        self._signals = (signal.SIGINT, signal.SIGTERM) if alone else (signal.SIGINT,)

    def __enter__(self) -> "InterruptGuard":
        if self._guards:
            self._previous = [signal.signal(number, self._note) for number in self._signals]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._guards:
            for number, previous in zip(self._signals, self._previous, strict=True):
                signal.signal(number, previous)

    def batches(self, loader: Loader) -> Iterator[Batch]:
        """Yield the batches of a loader.

        Where this process was asked to stop and no batch came in a moment, what the loader yielded before counts as
        consumed, and nothing else. One of several ranks gets a last batch without windows then.

        Raises
        ------
        NoBatchError
            The same, of a process that trains alone.
        """
        coming = iter(loader)
        while True:
            self._awaited = time.monotonic(), loader
            try:
                batch = next(coming, None)
            except RuntimeError as error:
                if not self._gave_up():
                    raise
                if self._alone:
                    raise NoBatchError from error
                self.lacks_batch = True
                batch = absent_batch(loader)
            finally:
                self._awaited = None
            if batch is None:
                return
            yield batch
            if self.lacks_batch:
                return

    def _gave_up(self) -> bool:
        return self.requested and self._awaited is None

    def _note(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        if not self._patient:
            threading.Thread(target=self._end_waiting, name="headrace-stop", daemon=True).start()

    def _end_waiting(self) -> None:
        """End the wait for a batch that does not come."""
        asked = time.monotonic()
        while not self._ended.wait(_LOOK_SECONDS):
            awaited = self._awaited
            if awaited is not None and time.monotonic() - max(awaited[0], asked) > _PATIENCE_SECONDS:
                self._awaited = None
                awaited[1].end_iteration()
                return
