"""Requests that one piece of work made, so that they can be given up without touching those of others.

A build's tasks run in threads that they share with nobody, but their requests share a pool with loaders and with other
builds of the process. Work is known by a name, because a task is told no more than what can be sent to another process.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

_groups: "Final[dict[str, RequestGroup]]" = {}
made_for: ContextVar["RequestGroup | None"] = ContextVar("made_for", default=None)
"""The work that requests of this context belong to; Zarr's event loop inherits it."""


class RequestGroup:
    """What one piece of work has asked for and not received; used by several threads at once."""

    def __init__(self) -> None:
        self.ended = False
        self._made: set[Future[Any]] = set()

    def add(self, outcome: Future[Any]) -> None:
        """Take in a request; RuntimeError once the work was given up."""
        self._made.add(outcome)
        if self.ended:
            self._made.discard(outcome)
            raise RuntimeError("no request can be sent: the work was given up")

    def discard(self, outcome: Future[Any]) -> None:
        """Let go of a request that has its answer."""
        self._made.discard(outcome)

    def end(self) -> list[Future[Any]]:
        """Take no more, and return what is queued or under way."""
        self.ended = True
        return list(self._made)


@contextmanager
def request_group(name: str) -> Iterator[RequestGroup]:
    """Begin work under a name that no other work of this process has meanwhile."""
    group = _groups[name] = RequestGroup()
    try:
        yield group
    finally:
        if _groups.get(name) is group:
            del _groups[name]


@contextmanager
def part_of(name: str) -> Iterator[None]:
    """Let requests belong to the work of that name, where this process has begun it."""
    token = made_for.set(_groups.get(name))
    try:
        yield
    finally:
        made_for.reset(token)
