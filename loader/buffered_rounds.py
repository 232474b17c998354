"""Rounds of a split that does not fit in memory, in pool buffers that take turns.

A spilled split is decoded once into rows on disk, and a round copies its tiles from there. Where nothing may be spilled
a round reads its chunks again, whatever earlier rounds read of them.
"""

import logging
import queue
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future, wait

import numpy as np
from numpy.typing import NDArray

from headrace.loader.amplification import reads_per_chunk
from headrace.loader.layout import Layout
from headrace.loader.placement import place_stretches
from headrace.loader.pool import Pool, RoundWindows
from headrace.loader.read import GroupReader
from headrace.loader.read_plan import OpenDataset
from headrace.loader.round_windows import windows_of_round
from headrace.loader.schedule import EpochPlan
from headrace.loader.storage import Rows, rows_in_memory
from headrace.loader.tiles import Tiles
from headrace.schemas.windows import WindowSpec

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 0.5
"""How often a wait for a buffer looks whether the interpreter is about to end."""


class RoundClosedError(RuntimeError):
    """The epoch was closed while a round was on its way."""


def wait_for(reads: Sequence[Future[None]], stop: Future[None]) -> None:
    """Wait for reads and raise what one of them raised; a read that hangs does not outlive ``stop``."""
    for read in reads:
        if not read.done():
            wait((read, stop), return_when="FIRST_COMPLETED")
        if stop.done():
            msg = "the epoch was closed"
            raise RoundClosedError(msg)
        read.result()


class BufferedRounds(ABC):
    """What both kinds have in common: the buffers and the order in which they are used.

    Parameters
    ----------
    tiles, reader, window
        What is served and who reads it.
    shape
        Rows, Vx and Vy of a buffer.
    num_pools
        Buffers: one for the round being served and one for each that is read ahead.
    """

    def __init__(
        self, tiles: Tiles, reader: GroupReader, window: WindowSpec, *, shape: tuple[int, int, int], num_pools: int
    ) -> None:
        self._tiles, self._reader, self._window = tiles, reader, window
        self._shape, self._num_pools = shape, num_pools
        self._buffers = self._new_buffers()
        self.open(range(0))

    def open(self, numbers: range) -> None:
        """Begin a pass over some rounds: all buffers are free, and failed reads of an earlier one are tried again."""
        self._reader.new_pass()
        self._used: dict[int, Rows] = {}
        self._free: queue.SimpleQueue[Rows | None] = queue.SimpleQueue()
        for buffer in self._buffers:
            self._free.put(buffer)

    def windows(self, plan: EpochPlan, number: int) -> RoundWindows:
        """Return where the windows of a round will lie in its pool; reads nothing."""
        tiles = plan.tiles_of(number)
        place = np.cumsum(self._tiles.num_rows[tiles]) - self._tiles.num_rows[tiles]
        return windows_of_round(self._tiles, plan, number, place - self._tiles.step_start[tiles])

    @abstractmethod
    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Bring a round into a buffer."""

    def release(self, pool: Pool) -> None:
        """Give a round's buffer back for a later round."""
        self._free.put(self._used.pop(id(pool)))

    def close(self) -> None:
        """Wake a waiting :meth:`prepare`."""
        self._free.put(None)

    def _new_buffers(self) -> list[Rows]:
        return [rows_in_memory(*self._shape) for _ in range(self._num_pools)]

    def _take_buffer(self) -> Rows:
        """Wait for a free buffer; gives up when the epoch is closed, or the interpreter ends while nobody consumes."""
        while True:
            try:
                buffer = self._free.get(timeout=_PATIENCE_SECONDS)
            except queue.Empty:
                if self._reader.open_for_reads():
                    continue
                buffer = None
            if buffer is None:
                self._free.put(None)  # for the rounds after this one: they give up at once
                msg = "the epoch was closed"
                raise RoundClosedError(msg)
            return buffer

    def _pool_of(self, buffer: Rows, num_rows: int) -> Pool:
        pool = Pool(buffer.x[:num_rows], buffer.y[:num_rows], self._window)
        self._used[id(pool)] = buffer
        return pool

    def _needs(self, tiles: NDArray[np.int64]) -> list[int]:
        return self._reader.groups_of(
            self._tiles.slot[tiles], self._tiles.step_start[tiles], self._tiles.step_stop[tiles]
        )


class SpilledRounds(BufferedRounds):
    """Rounds copied from decoded rows on disk.

    Parameters
    ----------
    tiles, layout, rows, reader, window
        As for :class:`ResidentRounds`.
    shape, num_pools
        As for :class:`BufferedRounds`.
    """

    def __init__(
        self,
        tiles: Tiles,
        layout: Layout,
        rows: Rows,
        reader: GroupReader,
        window: WindowSpec,
        *,
        shape: tuple[int, int, int],
        num_pools: int,
    ) -> None:
        self._layout, self._rows = layout, rows
        super().__init__(tiles, reader, window, shape=shape, num_pools=num_pools)

    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Decode what the round's tiles still need, wait for a free buffer and copy the tiles into it."""
        tiles = plan.tiles_of(number)
        slot = self._tiles.slot[tiles]
        wait_for(self._reader.start(self._needs(tiles)), stop)
        buffer = self._take_buffer()
        source = self._layout.base[slot] + self._tiles.step_start[tiles] - self._layout.first[slot]
        end = 0
        for rows, origin in zip(self._tiles.num_rows[tiles].tolist(), source.tolist(), strict=True):
            begin, end = end, end + rows
            buffer.x[begin:end] = self._rows.x[origin : origin + rows]
            buffer.y[begin:end] = self._rows.y[origin : origin + rows]
        return self._pool_of(buffer, end)


class RereadRounds(BufferedRounds):
    """Rounds whose chunks are read again each time.

    Parameters
    ----------
    tiles, layout, datasets, reader, window
        What is served, from where, and who reads it.
    shape, num_pools
        As for :class:`BufferedRounds`.
    """

    def __init__(
        self,
        tiles: Tiles,
        layout: Layout,
        datasets: Sequence[OpenDataset],
        reader: GroupReader,
        window: WindowSpec,
        *,
        shape: tuple[int, int, int],
        num_pools: int,
    ) -> None:
        self._layout, self._datasets = layout, datasets
        self._reads: list[Future[None]] = []
        self._said = False
        super().__init__(tiles, reader, window, shape=shape, num_pools=num_pools)

    def open(self, numbers: range) -> None:
        """Begin a pass over some rounds; a read that an earlier pass left under way keeps its buffer to itself."""
        if not all(read.done() for read in self._reads):
            self._buffers = self._new_buffers()
        self._reads = []
        super().open(numbers)

    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Wait for a free buffer and read the round's tiles into it."""
        self._say(plan)
        buffer = self._take_buffer()
        chosen = plan.tiles_of(number)
        rows = self._tiles.num_rows[chosen]
        where = place_stretches(
            self._tiles.slot[chosen],
            self._tiles.step_start[chosen],
            self._tiles.step_stop[chosen],
            np.cumsum(rows) - rows,
        )
        reads = self._reader.start_into(self._needs(chosen), buffer, where)
        self._reads = [read for read in self._reads if not read.done()] + reads
        try:
            wait_for(reads, stop)
        finally:
            for read in reads:
                read.cancel()
        return self._pool_of(buffer, int(rows.sum()))

    def _say(self, plan: EpochPlan) -> None:
        """Say once, before it is paid, what reading again costs."""
        if not self._said:
            self._said = True
            logger.warning(
                "cache_dir is off and the split does not fit memory_budget: an epoch of %d rounds reads each chunk "
                "%.1f times",
                plan.num_rounds,
                reads_per_chunk(plan, self._tiles, self._layout, self._datasets),
            )
