"""What this process asked of object stores so far."""

import os
import socket
import threading
from collections.abc import Iterable
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

    def __str__(self) -> str:
        """Return one clause for a summary."""
        return (
            f"{self.requests:,} requests to object storage, {self.nbytes / 1e6:,.1f} MB received, "
            f"{self.retries:,} sent again, {self.throttles:,} answers asked for fewer"
        )

    def __add__(self, other: "RequestCounts") -> "RequestCounts":
        return RequestCounts(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __sub__(self, other: "RequestCounts") -> "RequestCounts":
        return RequestCounts(**{f.name: getattr(self, f.name) - getattr(other, f.name) for f in fields(self)})


class _Counter:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = self._nbytes = self._retries = self._throttles = 0  # every request counts itself: plain sums

    def add(self, *, requests: int = 0, nbytes: int = 0, retries: int = 0, throttles: int = 0) -> None:
        """Count some more."""
        with self._lock:
            self._requests += requests
            self._nbytes += nbytes
            self._retries += retries
            self._throttles += throttles

    def now(self) -> RequestCounts:
        """Return the counts since the process began."""
        with self._lock:
            return RequestCounts(
                requests=self._requests, nbytes=self._nbytes, retries=self._retries, throttles=self._throttles
            )


counter = _Counter()
"""The one of this process."""


def request_counts() -> RequestCounts:
    """Return what this process asked so far; the difference of two calls is what lies between them."""
    return counter.now()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a process had asked before and after a piece of work; comes back with its result.

    Parameters
    ----------
    process
        A name that no other process of a cluster has.
    before, after
        Counts since the process began. Other threads may have asked meanwhile.
    """

    process: str
    before: RequestCounts
    after: RequestCounts


def share_since(before: RequestCounts) -> Share:
    """Return what this process asked since it had asked ``before``."""
    return Share(process=_process_name(), before=before, after=counter.now())


def add_shares(shares: Iterable[Share]) -> None:
    """Count what other processes asked between their first and their last share as asked by this one."""
    spans: dict[str, tuple[RequestCounts, RequestCounts]] = {}
    for share in shares:
        first, last = spans.get(share.process, (share.before, share.after))
        spans[share.process] = min(first, share.before, key=_requests), max(last, share.after, key=_requests)
    spans.pop(_process_name(), None)
    for first, last in spans.values():
        asked = last - first
        counter.add(requests=asked.requests, nbytes=asked.nbytes, retries=asked.retries, throttles=asked.throttles)


def _requests(counts: RequestCounts) -> int:
    return counts.requests


def _process_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
