"""Threads that send requests and let a process end: what is queued is dropped then, and no silent server is awaited.

The threads of Python's own executor are joined at the end of a process, after everything that is queued was sent. These
end when they have had nothing to do for a while, and one that waits for what nobody wants any longer makes room for
another.
"""

import atexit
import concurrent.futures.thread  # noqa: F401 - what it registers for the end of a process comes after what is here
import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, InvalidStateError, wait
from queue import Empty, SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakSet

from headrace.objects.request_group import RequestGroup, made_for

P = ParamSpec("P")
T = TypeVar("T")
_GRACE_SECONDS: Final = 1.0
"""How long requests under way are waited for before they are given up."""
IDLE_SECONDS: Final = 20.0
"""How long a thread waits for something to do before it ends."""
_pools: "WeakSet[RequestThreads]" = WeakSet()
os.register_at_fork(after_in_child=_pools.clear)  # a forked child has none of these threads to wait for


class Request(Future[T]):
    """A call that is queued or under way."""

    def __init__(self, threads: "RequestThreads", group: RequestGroup | None) -> None:
        super().__init__()
        self.threads, self.group = threads, group


class RequestThreads(Executor):
    """An executor of requests.

    Parameters
    ----------
    most
        Requests under way at once.
    """

    def __init__(self, most: int) -> None:
        self._most, self._num_threads = most, 0
        self._lock = threading.Lock()
        self._num_idle = 0
        self._waiting: SimpleQueue[tuple[Request[Any], Callable[..., Any], Any, Any] | None] = SimpleQueue()
        self._running: dict[int, Request[Any]] = {}
        self.ended = threading.Event()
        _pools.add(self)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        """Queue a call; RuntimeError once the process ends, or the work that it is part of was given up."""
        group = made_for.get()
        outcome: Request[T] = Request(self, group)
        if group is not None:
            group.add(outcome)
        with self._lock:
            if self.ended.is_set():
                raise RuntimeError("no request can be sent: the process ends")
            self._waiting.put((outcome, fn, args, kwargs))
            self._start_if_wanted()
        return outcome

    def drop(self) -> list[Request[Any]]:
        """Take no more, drop what is queued, let threads end, and return what is under way."""
        with self._lock:
            self.ended.set()
        with contextlib.suppress(Empty):
            while (queued := self._waiting.get_nowait()) is not None:
                queued[0].cancel()
                queued[0].set_running_or_notify_cancel()
        self._waiting.put(None)
        return list(self._running.values())

    def replace_one(self) -> None:
        """Count a thread no longer whose call was given up; it ends when the call does."""
        with self._lock:
            self._num_threads -= 1
            self._start_if_wanted()

    def pause(self, seconds: float) -> bool:
        """Wait between two tries; return whether the next one is still wanted."""
        if self.ended.wait(seconds):
            return False
        own, group = self._running.get(threading.get_ident()), made_for.get()
        return not (own is not None and own.done()) and not (group is not None and group.ended)

    def _start_if_wanted(self) -> None:
        """Start a thread where more is queued than idle ones will take; the lock is held."""
        if self._waiting.qsize() <= self._num_idle or self._num_threads >= self._most or self.ended.is_set():
            return
        self._num_threads += 1
        threading.Thread(target=self._work, name=f"s3-request_{self._num_threads}", daemon=True).start()

    def _work(self) -> None:
        here = threading.get_ident()
        while (queued := self._next()) is not None:
            outcome, call, args, kwargs = queued
            del queued
            group = outcome.group
            wanted = outcome.set_running_or_notify_cancel()
            kept = not wanted
            if wanted:
                made_for.set(group)
                self._running[here] = outcome
                try:
                    found = call(*args, **kwargs)
                except BaseException as error:  # noqa: BLE001 - whoever waits raises it
                    kept = _settle(outcome.set_exception, error)
                else:
                    kept = _settle(outcome.set_result, found)
                    del found
                del self._running[here]
            if group is not None:
                group.discard(outcome)
            del outcome, call, args, kwargs, group
            if not kept:
                return  # another has taken this one's place

    def _next(self) -> tuple[Request[Any], Callable[..., Any], Any, Any] | None:
        """Wait for something to do; None where this thread is to end."""
        try:
            queued = self._waiting.get_nowait()
        except Empty:
            with self._lock:
                self._num_idle += 1
            while True:
                try:
                    queued = self._waiting.get(timeout=IDLE_SECONDS)
                    break
                except Empty:
                    with self._lock:
                        if self._waiting.empty():  # else something was queued just now, and no thread started for it
                            self._num_idle -= 1
                            self._num_threads -= 1
                            return None
            with self._lock:
                self._num_idle -= 1
                self._start_if_wanted()  # what was queued since this one took something counted on it
        if queued is None:
            self._waiting.put(None)  # for the next thread
        return queued


def give_up(outcome: Future[Any]) -> None:
    """Let nobody wait for a call any longer: it is cancelled, or its thread is left to itself."""
    if outcome.cancel():
        return
    gone = _settle(outcome.set_exception, RuntimeError("the request was given up"))
    if gone and isinstance(outcome, Request):
        outcome.threads.replace_one()


def give_up_soon(outcomes: Iterable[Future[Any]]) -> None:
    """Cancel what is queued, and give up what is under way and does not come in a moment."""
    running = [outcome for outcome in outcomes if not outcome.cancel()]
    for outcome in wait(running, _GRACE_SECONDS).not_done:
        give_up(outcome)


def _settle(say: Callable[[Any], None], what: object) -> bool:
    """Return whether it was said; not, where the call was given up."""
    with contextlib.suppress(InvalidStateError):
        say(what)
        return True
    return False


def end_all() -> None:
    """Drop what is queued, and let nobody wait for what is under way and does not come in a moment; no pool is left."""
    pools = list(_pools)
    _pools.clear()
    give_up_soon([outcome for pool in pools for outcome in pool.drop()])


# Before the threads of executors are joined, which may wait for requests. Python's own executor uses the same.
getattr(threading, "_register_atexit", atexit.register)(end_all)
