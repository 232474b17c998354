"""How many bytes reads may hold together: more readers than fit wait, and one that alone is too much goes alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class MemoryGate:
    """Let reads begin while the bytes they hold stay within a limit.

    Parameters
    ----------
    most_nbytes
        The limit. A single read may exceed it, since a stored chunk cannot be decoded in parts.
    """

    def __init__(self, most_nbytes: int) -> None:
        self._most, self._held = most_nbytes, 0
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, nbytes: int) -> Iterator[None]:
        """Hold bytes for as long as the block runs; waits until they fit."""
        with self._changed:
            self._changed.wait_for(lambda: self._held == 0 or self._held + nbytes <= self._most)
            self._held += nbytes
        try:
            yield
        finally:
            with self._changed:
                self._held -= nbytes
                self._changed.notify_all()
