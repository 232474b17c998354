"""Memory for decoded chunks, used again: fresh memory for each costs a third of what decoding does.

Whoever decodes holds a lease, takes memory from it and gives it back once the values are used up. What was given back
waits for the next one as long as anybody holds a lease, so never more is kept than was once in use together.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST_NBYTES: Final = 1 << 16
"""Smaller chunks get fresh memory, which the allocator has at hand."""


class Scratch:
    """Memory that several threads lease."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases = 0
        self._free: list[NDArray[np.uint8]] = []

    @contextmanager
    def lease(self) -> Iterator["Lease"]:
        """Hold a lease; what it took is given back in the end."""
        with self._lock:
            self._leases += 1
        lease = Lease(self)
        try:
            yield lease
        finally:
            lease.give_back()
            with self._lock:
                self._leases -= 1
                if self._leases == 0:
                    self._free.clear()

    def take(self, nbytes: int) -> NDArray[np.uint8]:
        """Return memory, used or new; used one of another size is let go."""
        with self._lock:
            if self._free and self._free[-1].size == nbytes:
                return self._free.pop()
            self._free.clear()
        return np.empty(nbytes, np.uint8)

    def put(self, taken: list[NDArray[np.uint8]]) -> None:
        """Take memory back."""
        with self._lock:
            self._free += taken

    @property
    def nbytes(self) -> int:
        """Bytes that wait to be used again."""
        with self._lock:
            return sum(memory.size for memory in self._free)


class Lease:
    """What one reader took."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._taken: list[NDArray[np.uint8]] = []

    def take(self, nbytes: int) -> NDArray[np.uint8]:
        """Return memory for ``nbytes``; its content is anything."""
        memory = self._scratch.take(nbytes)
        self._taken.append(memory)
        return memory

    def give_back(self) -> None:
        """Let others overwrite what was taken: no value in it is used any more."""
        taken, self._taken = self._taken, []
        self._scratch.put(taken)
