"""Ctrl-C at the terminal: the first one stops a command in order, the next one leaves at once, and neither is noisy."""

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

STOPPED = 130
"""Exit code after Ctrl-C."""
_TRACKER_WARNING = "ignore:resource_tracker:UserWarning"
"""Of Python's process that gives back the semaphores of worker processes: it does so, and also complains of them."""


@contextlib.contextmanager
def orderly_interrupts() -> Iterator[None]:
    """Turn the first Ctrl-C into KeyboardInterrupt and the second into an exit on the spot.

    Cleaning up takes a moment, chunks under way and worker processes being waited for, and a Ctrl-C in its middle would
    leave tracebacks of whatever was at work. Whole parts, checkpoints and tables survive either way: none is written in
    place. Outside the main thread, and where Ctrl-C is ignored or handled by somebody else, nothing changes.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    if _TRACKER_WARNING not in sys.warnoptions:
        sys.warnoptions.append(_TRACKER_WARNING)  # worker processes and their helper are started with these
    signal.signal(signal.SIGINT, _first)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _first:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def leave() -> NoReturn:
    """Leave after Ctrl-C; a further one exits on the spot, and none is heard while the interpreter closes."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _second)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    sys.exit(STOPPED)


def _first(signum: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _second)
    raise KeyboardInterrupt


def _second(signum: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"\nStopped at once; what was finished is kept.\n")
    os._exit(STOPPED)
