"""Ctrl-C, or the end that a job scheduler announces, between batches instead of in the middle of one.

What is saved is whole then. SLURM, Kubernetes and Docker send SIGTERM and kill half a minute later or so.
"""

import signal
import threading
from types import FrameType, TracebackType


class InterruptGuard:
    """While open, the first Ctrl-C or SIGTERM only sets :attr:`requested`; the second one raises at once.

    Outside the main thread, where Python delivers no signals, it does nothing.

    Parameters
    ----------
    alone
        Whether this process trains alone. One of several leaves SIGTERM as it is: their launcher sends it when one of
        them is gone, and no checkpoint can be agreed on any more.
    """

    def __init__(self, *, alone: bool) -> None:
        self.requested = False
        self._guards = threading.current_thread() is threading.main_thread()
        self._signals = (signal.SIGINT, signal.SIGTERM) if alone else (signal.SIGINT,)

    def __enter__(self) -> "InterruptGuard":
        if self._guards:
            self._previous = [signal.signal(number, self._note) for number in self._signals]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._guards:
            for number, previous in zip(self._signals, self._previous, strict=True):
                signal.signal(number, previous)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
