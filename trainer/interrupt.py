"""Ctrl-C between batches instead of in the middle of one, so that what is saved is whole."""

import signal
import threading
from types import FrameType, TracebackType


class InterruptGuard:
    """While open, the first Ctrl-C only sets :attr:`requested`; the second one raises at once.

    Outside the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._guards = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> "InterruptGuard":
        if self._guards:
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._guards:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
