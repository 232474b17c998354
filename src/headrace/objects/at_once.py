"""Calls that wait for a bucket, in threads of their own: several looks at once, and waits that can be cut short."""

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

T = TypeVar("T")
AFTER_STOP_SECONDS: Final = 1.5
"""How long work that Ctrl-C leaves to be done may take: its server may be silent."""


def begin(call: Callable[[], T], *, remote: bool) -> Callable[[], T]:
    """Return what waits for a call and returns what it returned, or raises what it raised.

    Parameters
    ----------
    call
        Runs in a thread of its own, in the present context; an end of the process does not wait for it.
    remote
        Whether to begin now; else it runs when it is asked for.
    """
    return _started(call).result if remote else call


def within(call: Callable[[], T], seconds: float | None) -> T:
    """Return what a call returns, or leave it to itself after some seconds; Ctrl-C is heard meanwhile.

    Raises
    ------
    TimeoutError
        It did not end in time.
    """
    return _started(call).result(seconds)


def _started(call: Callable[[], T]) -> "Future[T]":
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - whoever waits raises it
            outcome.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=run, name="headrace-look", daemon=True).start()
    return outcome


def at_once(calls: Sequence[Callable[[], T]], *, remote: bool) -> list[T]:
    """Return what calls return, in their order; the first of them that fails is what is raised."""
    return [outcome() for outcome in [begin(call, remote=remote and len(calls) > 1) for call in calls]]
