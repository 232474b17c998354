"""A device that is not there: memory of the host, and copies that wait for as long as a real one could let them wait.

What is queued on the stream for copies runs only when somebody waits for a mark after it. Code that overwrites a buffer
too early, or uses rows before their copy, therefore gets wrong values here every time and not once in a while.
"""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch


class LazyLane:
    """A :class:`headrace.loader.lane.Lane` over host memory; its memory begins as NaN."""

    def __init__(self, free_nbytes: int = 2**40) -> None:
        self.device = torch.device("cpu")
        self.copied: list[int] = []
        """Bytes of each copy, in the order they ran."""
        self._free = free_nbytes
        self._queued: deque[tuple[int, torch.Tensor, torch.Tensor]] = deque()
        self._number = 0
        self._lock = threading.RLock()
        self._local = threading.local()

    def free_nbytes(self) -> int:
        """Return what it was made with."""
        return self._free

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return memory that no test takes for values."""
        return torch.full(tuple(shape), float("nan") if dtype.is_floating_point else -7, dtype=dtype)

    def pinned(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return memory that is never given out twice."""
        return self.empty(shape, dtype)

    @contextmanager
    def side(self) -> Iterator[None]:
        """Queue the copies of the block."""
        self._local.side = True
        try:
            yield
        finally:
            self._local.side = False

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        """Copy at once, or queue the copy if it is for the stream for copies."""
        with self._lock:
            self._number += 1
            self._queued.append((self._number, to, source))
            if not getattr(self._local, "side", False):
                queued, self._queued = self._queued, deque([self._queued.pop()])
                self._run(self._number)
                self._queued = queued

    def mark(self) -> int:
        """Return the number of the last copy queued."""
        with self._lock:
            return self._number

    def wait(self, mark: int) -> None:
        """Run the copies up to a mark."""
        with self._lock:
            self._run(mark)

    def finish(self, mark: int) -> None:
        """Run the copies up to a mark."""
        self.wait(mark)

    def keep(self, tensor: torch.Tensor) -> None:
        """Nothing to do: memory of the host lives as long as somebody has it."""

    def _run(self, mark: int) -> None:
        while self._queued and self._queued[0][0] <= mark:
            _, to, source = self._queued.popleft()
            to.copy_(source)
            self.copied.append(to.nbytes)
