"""Threads that send requests and let a process end: what is queued is dropped then, and no silent server is awaited.

The threads of Python's own executor are joined at the end of a process, after everything that is queued was sent.
"""

import atexit
import concurrent.futures.thread  # noqa: F401 - what it registers for the end of a process comes after what is here
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, InvalidStateError, wait
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_GRACE_SECONDS: Final = 1.0
"""How long the end of a process waits for requests under way."""
_pools: "list[RequestThreads]" = []
os.register_at_fork(after_in_child=_pools.clear)  # a forked child has none of these threads to wait for


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
        self._idle = threading.Semaphore(0)
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._running: dict[int, Future[Any]] = {}
        self.ended = threading.Event()
        _pools.append(self)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue a call; RuntimeError once the process ends."""
        with self._lock:
            if self.ended.is_set():
                raise RuntimeError("no request can be sent: the process ends")
            outcome: Future[T] = Future()
            self._waiting.put((outcome, partial(fn, *args, **kwargs)))
            if not self._idle.acquire(blocking=False) and self._num_threads < self._most:
                name = f"s3-request_{self._num_threads}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
                self._num_threads += 1
        return outcome

    def drop(self) -> list[Future[Any]]:
        """Take no more, drop what is queued, let threads end, and return what is under way."""
        with self._lock:
            self.ended.set()
        with contextlib.suppress(Empty):
            while (queued := self._waiting.get_nowait()) is not None:
                queued[0].cancel()
                queued[0].set_running_or_notify_cancel()
        self._waiting.put(None)
        return list(self._running.values())

    def _work(self) -> None:
        here = threading.get_ident()
        while True:
            try:
                queued = self._waiting.get_nowait()
            except Empty:
                self._idle.release()
                queued = self._waiting.get()
            if queued is None:
                self._waiting.put(None)  # for the next thread
                return
            outcome, call = queued
            del queued
            if not outcome.set_running_or_notify_cancel():
                continue
            self._running[here] = outcome
            try:
                found = call()
            except BaseException as error:  # noqa: BLE001 - whoever waits raises it
                _settle(outcome.set_exception, error)
            else:
                _settle(outcome.set_result, found)
                del found
            del self._running[here], outcome, call


def give_up(outcome: Future[Any]) -> None:
    """Let nobody wait for a call any longer: it is cancelled, or its thread is left to itself."""
    if not outcome.cancel():
        _settle(outcome.set_exception, RuntimeError("the request was given up"))


def _settle(say: Callable[[Any], None], what: object) -> None:
    with contextlib.suppress(InvalidStateError):  # it was given up
        say(what)


def end_all() -> None:
    """Drop what is queued, and let nobody wait for what is under way and does not come in a moment; no pool is left."""
    pools, _pools[:] = list(_pools), []
    running = [outcome for pool in pools for outcome in pool.drop()]
    for outcome in wait(running, _GRACE_SECONDS).not_done:
        give_up(outcome)


# Before the threads of executors are joined, which may wait for requests. Python's own executor uses the same.
getattr(threading, "_register_atexit", atexit.register)(end_all)
