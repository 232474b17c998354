"""Run independent looks at stores at once where each waits for a bucket, one after another on a disk."""

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def begin(call: Callable[[], T], *, remote: bool) -> Callable[[], T]:
    """Return what waits for a call and returns what it returned, or raises what it raised.

    Parameters
    ----------
    call
        Runs in a thread of its own, in the present context; an end of the process does not wait for it.
    remote
        Whether to begin now; else it runs when it is asked for.
    """
    if not remote:
        return call
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - whoever waits raises it
            outcome.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=run, name="headrace-look", daemon=True).start()
    return outcome.result


def at_once(calls: Sequence[Callable[[], T]], *, remote: bool) -> list[T]:
    """Return what calls return, in their order; the first of them that fails is what is raised."""
    return [outcome() for outcome in [begin(call, remote=remote and len(calls) > 1) for call in calls]]
