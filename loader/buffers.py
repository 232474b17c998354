"""Batch memory that is used again once nobody looks at it any more.

Fresh memory costs as much as the gather itself, because the system clears every page. A buffer goes back to the pool
when the last tensor or array over it is gone, so a consumer may keep batches for as long as it likes.
"""

import math
import weakref
from collections import deque

import numpy as np
import torch
from numpy.typing import NDArray

_KEPT = 16
"""Free buffers kept of one size: more than are ever under way, fewer than a consumer may have collected."""


class BufferPool:
    """Float32 tensors over recycled memory; safe to use from several threads."""

    def __init__(self) -> None:
        self._free: dict[int, deque[NDArray[np.float32]]] = {}
        self._lent: dict[int, tuple[weakref.ref[NDArray[np.float32]], NDArray[np.float32]]] = {}

    def take(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return an uninitialised float32 tensor of the shape."""
        size = math.prod(shape)
        free = self._free.setdefault(size, deque())
        try:
            block = free.pop()
        except IndexError:
            block = np.empty(size, dtype=np.float32)
        handle = block.view()
        key = id(handle)
        # The tensor's storage owns the handle; when both are gone the block is free again.
        self._lent[key] = weakref.ref(handle, lambda _: self._give_back(key)), block
        return torch.from_numpy(handle).view(shape)

    def _give_back(self, key: int) -> None:
        block = self._lent.pop(key)[1]
        if len(self._free[block.size]) < _KEPT:
            self._free[block.size].append(block)
