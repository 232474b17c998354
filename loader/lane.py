"""What device code needs of a device: memory, asynchronous copies, and marks in the order of work.

A mark stands for all work queued so far on the stream that the calling thread uses; work can be told to wait for it.
Everything above this file is the same with and without a GPU, so it can be tested without one.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

Mark = Any
"""Opaque; belongs to the lane that made it."""


class Lane(Protocol):
    """A device with a stream of its own for copies, beside the one that the caller's thread computes on."""

    @property
    def device(self) -> torch.device:
        """The device."""

    def free_nbytes(self) -> int:
        """Return how much memory of the device is free."""

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return uninitialised memory of the device, for the stream in use."""

    def pinned(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return uninitialised host memory that copies can read while the host goes on.

        It may be dropped, never overwritten, before a copy from it is done.
        """

    def side(self) -> AbstractContextManager[Any]:
        """Queue what the block does on the stream for copies."""

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        """Queue a copy from pinned host memory, float for float."""

    def mark(self) -> Mark:
        """Return a mark after the work queued so far on the stream in use."""

    def wait(self, mark: Mark) -> None:
        """Let further work on the stream in use wait for a mark; the host does not wait."""

    def finish(self, mark: Mark) -> None:
        """Let the host wait for a mark."""

    def keep(self, tensor: torch.Tensor) -> None:
        """Let nobody have a tensor's memory before the work queued so far on the stream in use is done with it."""


class CudaLane:
    """A CUDA device."""

    def __init__(self, device: torch.device) -> None:
        with torch.cuda.device(device):  # plain "cuda" is the device in use
            self.device = torch.device("cuda", torch.cuda.current_device())
        self._stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def free_nbytes(self) -> int:
        """Return how much memory of the device is free, to this process and to others."""
        return int(torch.cuda.mem_get_info(self.device)[0])

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return uninitialised memory of the device, for the stream in use."""
        return torch.empty(tuple(shape), dtype=dtype, device=self.device)

    def pinned(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return host memory from torch's cache of pinned blocks, which waits for the copies from a dropped block."""
        with torch.cuda.device(self.device):
            return torch.empty(tuple(shape), dtype=dtype, pin_memory=True)

    def side(self) -> AbstractContextManager[Any]:
        """Queue what the block does on the stream for copies."""
        return torch.cuda.stream(self._stream)

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        """Queue a copy from pinned host memory."""
        to.copy_(source, non_blocking=True)

    def mark(self) -> Mark:
        """Return an event after the work queued so far on the stream in use."""
        return torch.cuda.current_stream(self.device).record_event()

    def wait(self, mark: Mark) -> None:
        """Let further work on the stream in use wait for an event."""
        torch.cuda.current_stream(self.device).wait_event(mark)

    def finish(self, mark: Mark) -> None:
        """Let the host wait for an event."""
        mark.synchronize()

    def keep(self, tensor: torch.Tensor) -> None:
        """Tell the allocator that the stream in use reads a tensor."""
        tensor.record_stream(torch.cuda.current_stream(self.device))
