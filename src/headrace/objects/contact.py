"""The first contact with an address: one request at a time, short, and its outcome known to all that follow.

A wrong address may accept connections and stay silent. Until something has answered there, a request is given a few
seconds instead of the minute that an answer of a server at work may take.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from headrace.objects.faults import Fault
from headrace.schemas.storage_config import StorageConfig

T = TypeVar("T")
FIRST_SECONDS: Final = 7.0
"""How long the first answer of an address may take; more where ``timeout_seconds`` is more than a minute."""
AGAIN_SECONDS: Final = 3.0
"""Silence after which the first request is sent once more, beside the one that is under way."""
_REMEMBERED_SECONDS: Final = 5.0
"""How long after an address was given up further requests fail at once."""


def first_seconds(storage: StorageConfig) -> float:
    """Return how long the first answer of an address may take."""
    return min(storage.timeout_seconds, max(FIRST_SECONDS, storage.timeout_seconds * FIRST_SECONDS / 60.0))


class Contact:
    """Whether an address has answered this process; used by several threads at once."""

    def __init__(self) -> None:
        self.answered = False
        self._lock = threading.Lock()
        self._given_up: tuple[float, Fault] | None = None

    @contextmanager
    def first_request(self) -> Iterator["Turn"]:
        """Wait until no other request is the first one; from the first answer on nobody waits."""
        turn = Turn(self, None if self.answered else self._lock)
        try:
            if self.answered:
                turn.end()
            yield turn
        finally:
            turn.end()

    def lost(self) -> Fault | None:
        """Return why the address was given up a moment ago, or None when it is to be asked."""
        if self.answered or self._given_up is None or time.monotonic() - self._given_up[0] > _REMEMBERED_SECONDS:
            return None
        return self._given_up[1]

    def give_up(self, fault: Fault) -> None:
        """Let those that wait fail as well."""
        self._given_up = time.monotonic(), fault


class Turn:
    """The right to send the first request."""

    def __init__(self, contact: Contact, lock: "threading.Lock | None") -> None:
        self._contact, self._lock = contact, lock
        if lock is not None:
            lock.acquire()

    def heard(self) -> None:
        """Say that something answered: all others may go on."""
        self._contact.answered = True
        self.end()

    def end(self) -> None:
        """Let the next one try."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


@lru_cache(maxsize=256)
def _contact(endpoint: str, process: int) -> Contact:
    return Contact()


def contact_with(endpoint: str) -> Contact:
    """Return what this process knows of an address."""
    return _contact(endpoint, os.getpid())


class SilentError(Exception):
    """Nothing was heard of an address in the time of a first answer."""


def send_first(call: Callable[[], T], *, seconds: float, heard: Callable[[], bool], again: Callable[[], bool]) -> T:
    """Send the first request to an address, and once more beside it where nothing comes for a while.

    Parameters
    ----------
    call
        Sends it and waits for the answer; what it raises is raised here.
    seconds
        How long nothing may be heard.
    heard
        Whether an answer has begun: what follows it is waited for as long as it keeps coming.
    again
        Says whether it may be sent once more, and counts that.

    Raises
    ------
    SilentError
        Nothing came.
    """
    outcomes: SimpleQueue[tuple[list[T], Exception | None]] = SimpleQueue()
    began = time.monotonic()
    for number, until in enumerate((min(AGAIN_SECONDS, seconds), seconds)):
        if number == 0 or again():
            # A thread that is left waiting does not hold up the end of the process.
            threading.Thread(target=partial(_run, call, outcomes), name="s3-first", daemon=True).start()
        try:
            answer, error = outcomes.get(timeout=max(until - (time.monotonic() - began), 0.0))
        except Empty:
            if not heard() and until < seconds:
                continue
            if not heard():
                break
            answer, error = outcomes.get()
        if error is not None:
            raise error
        return answer[0]
    raise SilentError(f"no answer in {seconds:.0f} s")


def _run(call: Callable[[], T], outcomes: "SimpleQueue[tuple[list[T], Exception | None]]") -> None:
    try:
        outcomes.put(([call()], None))
    except Exception as error:  # noqa: BLE001 - whoever waits raises it
        outcomes.put(([], error))
