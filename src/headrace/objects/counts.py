"""What this process asked of object stores so far."""

import os
import socket
import threading
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCounts:
    """Requests of one process, or the sum over several.

    Parameters
    ----------
    requests
        Sent, tries that failed included.
    nbytes
        Bytes of objects received.
    retries
        Requests sent again after a fault.
    throttles
        Answers that asked for fewer requests.
    """

    requests: int = 0
    nbytes: int = 0
    retries: int = 0
    throttles: int = 0

    def __add__(self, other: "RequestCounts") -> "RequestCounts":
        return RequestCounts(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __sub__(self, other: "RequestCounts") -> "RequestCounts":
        return RequestCounts(**{f.name: getattr(self, f.name) - getattr(other, f.name) for f in fields(self)})


class _Counter:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = RequestCounts()

    def add(self, *, requests: int = 0, nbytes: int = 0, retries: int = 0, throttles: int = 0) -> None:
        """Count some more."""
        more = RequestCounts(requests=requests, nbytes=nbytes, retries=retries, throttles=throttles)
        with self._lock:
            self._counts += more

    def now(self) -> RequestCounts:
        """Return the counts since the process began."""
        with self._lock:
            return self._counts


counter = _Counter()
"""The one of this process."""


def request_counts() -> RequestCounts:
    """Return what this process asked so far; the difference of two calls is what lies between them."""
    return counter.now()


def process_name() -> str:
    """Return a name that no other process of a cluster has, to tell whose counts are whose."""
    return f"{socket.gethostname()}:{os.getpid()}"
