"""Rows of the host → the device, through two pinned buffers that take turns.

While one buffer is on its way the other is filled. When :meth:`Upload.send` returns the host's rows may be overwritten.
"""

from collections.abc import Iterable
from concurrent.futures import Future

import torch

from headrace.loader.buffered_rounds import RoundClosedError
from headrace.loader.lane import Lane, Mark

_BUFFER_VALUES = 4 * 2**20
"""float32 values of a buffer: 16 MiB hide the cost of a copy and are soon filled."""


class Upload:
    """Copy rows to the device; used by one thread at a time.

    Parameters
    ----------
    lane
        The device.
    buffer_values
        float32 values of each of the two buffers.
    """

    def __init__(self, lane: Lane, buffer_values: int = _BUFFER_VALUES) -> None:
        self._lane = lane
        self._buffers = [lane.pinned((buffer_values,), torch.float32) for _ in range(2)]
        self._sent: list[Mark | None] = [None, None]
        self._turn, self._used = 0, 0

    def send(self, pieces: Iterable[tuple[torch.Tensor, torch.Tensor]], stop: Future[None]) -> Mark:
        """Queue copies on the stream for copies and return the mark after them.

        Parameters
        ----------
        pieces
            Pairs of equally long float32 [n] tensors: memory of the device, memory of the host.
        stop
            Done when nobody wants the rest.

        Raises
        ------
        RoundClosedError
            ``stop`` was done first; what was queued so far is copied all the same.
        """
        lane = self._lane
        with lane.side():
            for to, source in pieces:
                done = 0
                while done < source.numel():
                    buffer = self._room(stop)
                    size = min(buffer.numel(), source.numel() - done)
                    buffer[:size].copy_(source[done : done + size])
                    lane.copy(to[done : done + size], buffer[:size])
                    self._used += size
                    done += size
            mark = self._sent[self._turn] = lane.mark()
        return mark

    def finish(self) -> None:
        """Wait until all copies are done."""
        for mark in self._sent:
            if mark is not None:
                self._lane.finish(mark)

    def _room(self, stop: Future[None]) -> torch.Tensor:
        """Return what is free of the present buffer, or all of the other one once its last copies are done."""
        if self._used == self._buffers[0].numel():
            self._sent[self._turn] = self._lane.mark()
            self._turn, self._used = 1 - self._turn, 0
            if stop.done():
                msg = "the epoch was closed"
                raise RoundClosedError(msg)
            earlier = self._sent[self._turn]
            if earlier is not None:
                self._lane.finish(earlier)
        return self._buffers[self._turn][self._used :]
