"""Rounds on a device: each is copied there once, by the thread that prepares it, ahead of the gathers from it.

They stand around the host's rounds and look like them. Legend: V columns.
"""

import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.loader.buffered_rounds import RoundClosedError
from headrace.loader.lane import Lane, Mark
from headrace.loader.layout import Layout
from headrace.loader.pool import Pool, RoundWindows
from headrace.loader.rounds import Rounds
from headrace.loader.schedule import EpochPlan
from headrace.loader.tiles import Tiles
from headrace.loader.upload import Upload
from headrace.schemas.windows import WindowSpec

_PATIENCE_SECONDS = 0.5
"""How often a wait for memory of the device looks whether the epoch is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRows:
    """Memory of the device: x float32 [rows, Vx] and y float32 [rows, Vy]."""

    x: torch.Tensor
    y: torch.Tensor

    @classmethod
    def of(cls, lane: Lane, num_rows: int, num_x: int, num_y: int) -> "DeviceRows":
        """Take memory of the device."""
        return cls(x=lane.empty((num_rows, num_x), torch.float32), y=lane.empty((num_rows, num_y), torch.float32))


class DevicePool(Pool):
    """A pool on a device, usable once the copy to it is done.

    Parameters
    ----------
    lane
        The device.
    buffer, num_rows
        Memory of the device and how many of its rows the pool has.
    window
        Shape of a window.
    ready
        Mark after the copy.
    """

    def __init__(self, lane: Lane, buffer: DeviceRows, num_rows: int, window: WindowSpec, ready: Mark) -> None:
        super().__init__(buffer.x[:num_rows], buffer.y[:num_rows], window)
        self.buffer, self._lane, self._ready = buffer, lane, ready

    def gather(self, x_row: torch.Tensor, y_row: torch.Tensor, x_out: torch.Tensor, y_out: torch.Tensor) -> None:
        """Queue the copy of windows into a batch, all tensors on the device, after the copy of the pool."""
        self._lane.wait(self._ready)
        super().gather(x_row, y_row, x_out, y_out)
        for rows in (self.buffer.x, self.buffer.y):
            self._lane.keep(rows)


class ResidentDeviceRounds:
    """A split that stays on the device: every tile is copied there when its first round is prepared, and never again.

    Parameters
    ----------
    source, tiles, layout, window
        The host's rounds, and where its rows lie.
    lane, upload
        The device and the way there.
    shape
        Rows, Vx and Vy.
    """

    def __init__(
        self,
        source: Rounds,
        tiles: Tiles,
        layout: Layout,
        window: WindowSpec,
        *,
        lane: Lane,
        upload: Upload,
        shape: tuple[int, int, int],
    ) -> None:
        self._source, self._window, self._lane, self._upload = source, window, lane, upload
        self._rows_of = tiles.num_rows
        self._first_row = layout.base[tiles.slot] + tiles.step_start - layout.first[tiles.slot]
        self._there = np.zeros(tiles.slot.size, dtype=bool)
        self._rows = DeviceRows.of(lane, *shape)
        self._free = lane.mark()

    def open(self, numbers: range) -> None:
        """Begin a pass over some rounds."""
        self._source.open(numbers)

    def windows(self, plan: EpochPlan, number: int) -> RoundWindows:
        """Return where the windows of a round lie in the pool; the same as on the host."""
        return self._source.windows(plan, number)

    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Wait for the host's rows of a round and copy those that are not on the device yet."""
        host = self._source.prepare(plan, number, stop)
        lacking = plan.tiles_of(number)
        lacking = lacking[~self._there[lacking]]
        ranges = merged(self._first_row[lacking], self._first_row[lacking] + self._rows_of[lacking])
        pairs = ((self._rows.x, host.x_rows), (self._rows.y, host.y_rows))
        pieces = ((to[begin:end], rows[begin:end]) for begin, end in ranges for to, rows in pairs)
        ready = _fill(self._rows, self._free, pieces, self._lane, self._upload, stop)
        self._there[lacking] = True
        self._source.release(host)
        return DevicePool(self._lane, self._rows, self._rows.x.shape[0], self._window, ready)

    def release(self, pool: Pool) -> None:
        """Nothing to give back: the rows stay."""

    def close(self) -> None:
        """Wake a waiting :meth:`prepare`."""
        self._source.close()


class BufferedDeviceRounds:
    """Rounds that take turns in buffers of the device.

    Parameters
    ----------
    source, window
        The host's rounds and the shape of a window.
    lane, upload
        The device and the way there.
    shape
        Rows of a buffer, Vx and Vy.
    num_pools
        Buffers.
    """

    def __init__(
        self,
        source: Rounds,
        window: WindowSpec,
        *,
        lane: Lane,
        upload: Upload,
        shape: tuple[int, int, int],
        num_pools: int,
    ) -> None:
        self._source, self._window, self._lane, self._upload = source, window, lane, upload
        self._buffers = [DeviceRows.of(lane, *shape) for _ in range(num_pools)]

    def open(self, numbers: range) -> None:
        """Begin a pass over some rounds: all buffers are free as soon as what was queued before is done."""
        self._source.open(numbers)
        self._free: queue.SimpleQueue[tuple[DeviceRows, Mark] | None] = queue.SimpleQueue()
        for buffer in self._buffers:
            self._free.put((buffer, self._lane.mark()))

    def windows(self, plan: EpochPlan, number: int) -> RoundWindows:
        """Return where the windows of a round will lie in its pool; the same as on the host."""
        return self._source.windows(plan, number)

    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Wait for the host's pool and a free buffer, and copy the one to the other."""
        host = self._source.prepare(plan, number, stop)
        try:
            buffer, free = self._take(stop.done)
            count = host.x_rows.shape[0]
            pieces = ((buffer.x[:count], host.x_rows), (buffer.y[:count], host.y_rows))
            ready = _fill(buffer, free, pieces, self._lane, self._upload, stop)
        finally:
            self._source.release(host)
        return DevicePool(self._lane, buffer, count, self._window, ready)

    def release(self, pool: Pool) -> None:
        """Give a round's buffer back; it is free once the gathers queued so far are done."""
        assert isinstance(pool, DevicePool)
        self._free.put((pool.buffer, self._lane.mark()))

    def close(self) -> None:
        """Wake a waiting :meth:`prepare`."""
        self._source.close()
        self._free.put(None)

    def _take(self, over: Callable[[], bool]) -> tuple[DeviceRows, Mark]:
        while not over() and threading.main_thread().is_alive():
            try:
                taken = self._free.get(timeout=_PATIENCE_SECONDS)
            except queue.Empty:
                continue
            if taken is not None:
                return taken
            self._free.put(None)  # for the rounds after this one
            break
        msg = "the epoch was closed"
        raise RoundClosedError(msg)


def _fill(
    buffer: DeviceRows,
    free: Mark,
    pieces: Iterable[tuple[torch.Tensor, torch.Tensor]],
    lane: Lane,
    upload: Upload,
    stop: Future[None],
) -> Mark:
    """Queue copies of rows to a buffer, after the mark from which on it is free; return the mark after them."""
    with lane.side():
        lane.wait(free)
        lane.keep(buffer.x)
        lane.keep(buffer.y)
    return upload.send(((to.flatten(), source.flatten()) for to, source in pieces), stop)


def merged(begin: NDArray[np.int64], end: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Join half-open ranges that touch or overlap; ascending."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order]) if end.size else end
    first = np.flatnonzero(np.append(True, begin[1:] > end[:-1])) if begin.size else np.zeros(0, np.int64)
    last = np.append(first[1:], begin.size) - 1 if begin.size else first
    return list(zip(begin[first].tolist(), end[last].tolist(), strict=True))
