"""How often stored chunks are read in an epoch whose rounds keep nothing from one another."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout
from headrace.loader.schedule import EpochPlan
from headrace.loader.sources import DatasetSource
from headrace.loader.tiles import Tiles
from headrace.schemas.grid import AxisGrid, ChunkGrid


class HasGrid(Protocol):
    """An array, open or only known by the index."""

    @property
    def grid(self) -> ChunkGrid:
        """How it is cut."""


class ReadFrom(Protocol):
    """A data set and the arrays that it is read from."""

    @property
    def source(self) -> DatasetSource:
        """The data set."""

    @property
    def arrays(self) -> Sequence[HasGrid]:
        """Its arrays over time."""


def reads_per_chunk(plan: EpochPlan, tiles: Tiles, layout: Layout, datasets: Sequence[ReadFrom]) -> float:
    """Return chunk reads of an epoch over distinct chunks read, from arithmetic alone; absent chunks count too."""
    in_round = np.repeat(np.arange(plan.num_rounds), np.diff(plan.round_cuts))
    slot = tiles.slot[plan.tile_order]
    reads = distinct = 0
    for number, opened in enumerate(datasets):
        own = np.flatnonzero(layout.dataset[slot] == number)
        row = opened.source.store_rows[layout.basin[slot[own]]]
        start, stop = tiles.step_start[plan.tile_order[own]], tiles.step_stop[plan.tile_order[own]]
        for array in opened.arrays:
            first, last = _chunks(array.grid.time, start, stop, opened.source.time_order)
            count = last - first + 1
            place = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
            chunk = np.repeat(row // array.grid.basin.chunk_size, count) << 32 | place
            names, name = np.unique(chunk, return_inverse=True)
            reads += np.unique(np.repeat(in_round[own], count) * names.size + name).size
            distinct += names.size
    return reads / max(distinct, 1)


def _chunks(
    time: AxisGrid, start: NDArray[np.int64], stop: NDArray[np.int64], order: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last time chunk of steps [start, stop); all of them where the axis was mended."""
    if order is not None:
        return np.zeros_like(start), np.full_like(start, time.num_chunks - 1)
    return start // time.chunk_size, (stop - 1) // time.chunk_size
