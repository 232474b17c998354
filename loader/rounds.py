"""Bring the rounds of an epoch into memory, one ahead of the one being served.

A resident split has one pool for good, filled as read groups arrive. A split that does not fit is decoded once into a
private file, and every round copies its tiles from there into one of two pool buffers.
"""

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout
from headrace.loader.pool import Pool, RoundWindows
from headrace.loader.read import GroupReader
from headrace.loader.schedule import EpochPlan
from headrace.loader.storage import Rows
from headrace.loader.tiles import Tiles
from headrace.schemas.windows import WindowSpec

_PATIENCE_SECONDS = 0.5
"""How often a wait for a buffer looks whether the interpreter is about to end."""


class RoundClosedError(RuntimeError):
    """The epoch was closed while a round was on its way."""


def _wait_for(reads: Sequence[Future[None]], stop: Future[None]) -> None:
    """Wait for reads and raise what one of them raised; a read that hangs does not outlive ``stop``."""
    for read in reads:
        if not read.done():
            wait((read, stop), return_when="FIRST_COMPLETED")
        if stop.done():
            msg = "the epoch was closed"
            raise RoundClosedError(msg)
        read.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Buffer:
    x: NDArray[np.float32]
    y: NDArray[np.float32]


class ResidentRounds:
    """Rounds of a split that stays in memory: one pool over all rows.

    Parameters
    ----------
    tiles, layout, rows, reader, window
        What is served, where its rows lie, and who fills them.
    """

    def __init__(self, tiles: Tiles, layout: Layout, rows: Rows, reader: GroupReader, window: WindowSpec) -> None:
        self._tiles, self._layout, self._reader = tiles, layout, reader
        self._pool = Pool(rows.x, rows.y, window)

    def open(self) -> None:
        """Begin a pass: what an earlier one failed to read is read again. The pool stays."""
        self._reader.new_pass()

    def windows(self, plan: EpochPlan, number: int) -> RoundWindows:
        """Return where the windows of a round lie in the pool; reads nothing."""
        tiles = plan.tiles_of(number)
        shift = self._layout.base[:-1] - self._layout.first
        return _windows_of(self._tiles, tiles, shift[self._tiles.slot[tiles]])

    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Wait until the rows of a round are decoded; those of the next one are read meanwhile."""
        reads = self._reader.start(self._tiles.slot[plan.tiles_of(number)])
        if number + 1 < plan.num_rounds:
            self._reader.start(self._tiles.slot[plan.tiles_of(number + 1)])
        _wait_for(reads, stop)
        return self._pool

    def release(self, pool: Pool) -> None:
        """Nothing to give back: the pool stays."""

    def close(self) -> None:
        """Nothing to wake."""


class SpilledRounds:
    """Rounds copied from decoded rows on disk into two pool buffers in turn.

    Parameters
    ----------
    tiles, layout, rows, reader, window
        As for :class:`ResidentRounds`.
    round_steps
        Rows that a buffer holds.
    """

    def __init__(
        self, tiles: Tiles, layout: Layout, rows: Rows, reader: GroupReader, window: WindowSpec, round_steps: int
    ) -> None:
        self._tiles, self._layout, self._rows, self._reader, self._window = tiles, layout, rows, reader, window
        shapes = (round_steps, rows.x.shape[1]), (round_steps, rows.y.shape[1])
        self._buffers = [
            _Buffer(x=np.empty(shapes[0], np.float32), y=np.empty(shapes[1], np.float32)) for _ in range(2)
        ]
        self.open()

    def open(self) -> None:
        """Begin a pass: both buffers are free, and what an earlier one failed to read is read again."""
        self._reader.new_pass()
        self._used: dict[int, _Buffer] = {}
        self._free: queue.SimpleQueue[_Buffer | None] = queue.SimpleQueue()
        for buffer in self._buffers:
            self._free.put(buffer)

    def windows(self, plan: EpochPlan, number: int) -> RoundWindows:
        """Return where the windows of a round will lie in its pool; reads nothing."""
        tiles = plan.tiles_of(number)
        place = np.cumsum(self._tiles.num_rows[tiles]) - self._tiles.num_rows[tiles]
        return _windows_of(self._tiles, tiles, place - self._tiles.step_start[tiles])

    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Decode what the round's tiles still need, wait for a free buffer and copy the tiles into it."""
        tiles = plan.tiles_of(number)
        slot = self._tiles.slot[tiles]
        _wait_for(self._reader.start(slot), stop)
        buffer = self._take_buffer()
        source = self._layout.base[slot] + self._tiles.step_start[tiles] - self._layout.first[slot]
        end = 0
        for rows, origin in zip(self._tiles.num_rows[tiles].tolist(), source.tolist(), strict=True):
            begin, end = end, end + rows
            buffer.x[begin:end] = self._rows.x[origin : origin + rows]
            buffer.y[begin:end] = self._rows.y[origin : origin + rows]
        pool = Pool(buffer.x[:end], buffer.y[:end], self._window)
        self._used[id(pool)] = buffer
        return pool

    def _take_buffer(self) -> _Buffer:
        """Wait for a free buffer; gives up when the epoch is closed, or the interpreter ends while nobody consumes."""
        while True:
            try:
                buffer = self._free.get(timeout=_PATIENCE_SECONDS)
            except queue.Empty:
                if self._reader.open_for_reads():
                    continue
                buffer = None
            if buffer is None:
                msg = "the epoch was closed"
                raise RoundClosedError(msg)
            return buffer

    def release(self, pool: Pool) -> None:
        """Give a round's buffer back for the round after next."""
        self._free.put(self._used.pop(id(pool)))

    def close(self) -> None:
        """Wake a waiting :meth:`prepare`."""
        self._free.put(None)


def _windows_of(tiles: Tiles, chosen: NDArray[np.int64], shift: NDArray[np.int64]) -> RoundWindows:
    """Collect the pieces of tiles; ``shift`` [tiles] turns a store step of a tile into its pool row."""
    cuts = tiles.piece_cuts
    count = cuts[chosen + 1] - cuts[chosen]
    piece = np.repeat(cuts[chosen] - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    start = tiles.piece_start[piece]
    return RoundWindows(
        done=np.append(0, np.cumsum(tiles.piece_windows[piece])),
        row=start.astype(np.int64) + np.repeat(shift, count),
        start=start,
        slot=np.repeat(tiles.slot[chosen], count),
        stride=tiles.stride,
    )


class RoundQueue:
    """Prepare rounds in order on one thread and count who still gathers from each.

    Parameters
    ----------
    source
        Where rounds come from.
    plan
        The epoch.
    numbers
        Rounds needed.
    """

    def __init__(self, source: ResidentRounds | SpilledRounds, plan: EpochPlan, numbers: range) -> None:
        self._source, self._plan = source, plan
        source.open()
        self._lock = threading.Lock()
        self._users = dict.fromkeys(numbers, 1)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="headrace-round")
        self._stop: Future[None] = Future()
        self._pools: dict[int, Future[Pool]] = {
            number: self._executor.submit(source.prepare, plan, number, self._stop) for number in numbers
        }

    def windows(self, number: int) -> RoundWindows:
        """Return where the windows of a round lie in its pool, without waiting for it."""
        return self._source.windows(self._plan, number)

    def use(self, number: int) -> None:
        """Announce one more gather from a round."""
        with self._lock:
            self._users[number] += 1

    def get(self, number: int) -> Pool:
        """Wait for a round's pool; raises what reading it raised."""
        return self._pools[number].result()

    def done(self, number: int) -> None:
        """Take back one announcement; the last one frees the round's buffer."""
        with self._lock:
            self._users[number] -= 1
            last = self._users[number] == 0
        if last:  # a round that this rank takes nothing from may still be on its way
            self._pools[number].add_done_callback(self._release)

    def _release(self, pool: Future[Pool]) -> None:
        if not pool.cancelled() and pool.exception() is None:
            self._source.release(pool.result())

    def close(self) -> None:
        """Stop preparing and join the thread; a second call does nothing, since the source may serve another epoch."""
        with self._lock:
            first_call = not self._stop.done()
            if first_call:
                self._stop.set_result(None)
        if first_call:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._source.close()
        self._executor.shutdown(wait=True)
