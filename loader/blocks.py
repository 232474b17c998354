"""Decoded blocks: every variable of one chunk grid × the basins of one basin chunk × one time chunk.

A process that serves windows by number keeps the blocks it used last, as many as its share of the memory budget holds.
Legend: S basins of a block, T its steps, Vx and Vy its inputs and targets.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.budget import human_nbytes
from headrace.loader.chunk_values import normalised
from headrace.loader.layout import Layout
from headrace.loader.normalize import Scaling
from headrace.loader.raw import RawReader
from headrace.loader.read_plan import OpenDataset, ReadGroup
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.grid import AxisGrid

_DECODED_TOGETHER = 32_768
"""Values of one variable decoded at once, so that its temporaries stay in the processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGrid:
    """The variables of one data set that share a chunk grid.

    Parameters
    ----------
    dataset
        Position among the loader's data sets.
    variables
        Positions among the data set's present variables.
    basin, time
        The chunk grid; one chunk over the whole time axis where that was mended.
    x_columns, y_columns
        int64, columns of x (masks after the inputs) and of y that a block holds.
    chunk, line
        int64 [slots of the data set], basin chunk of each slot and its line in the block.
    """

    dataset: int
    variables: tuple[int, ...]
    basin: AxisGrid
    time: AxisGrid
    x_columns: NDArray[np.int64]
    y_columns: NDArray[np.int64]
    chunk: NDArray[np.int64]
    line: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Normalised values.

    Parameters
    ----------
    start
        First step.
    x
        float32 [S, T, Vx], missing values 0; the masks after them where the loader has masks.
    y
        float32 [S, T, Vy], NaN is missing.
    """

    start: int
    x: NDArray[np.float32]
    y: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.x.nbytes + self.y.nbytes


def block_grids(datasets: Sequence[OpenDataset], layout: Layout, *, masks: bool) -> list[BlockGrid]:
    """Return the chunk grids of every data set; with ``masks`` a column follows for every input."""
    grids = []
    for number, opened in enumerate(datasets):
        num_inputs = len(opened.source.inputs)
        order = opened.source.time_order
        store_rows = opened.source.store_rows[layout.basin[layout.dataset == number]]
        by_grid: dict[tuple[AxisGrid, AxisGrid], list[int]] = {}
        for v, array in enumerate(opened.arrays):
            whole = None if order is None else AxisGrid(extent=order.size, chunk_size=max(order.size, 1))
            by_grid.setdefault((array.grid.basin, whole or array.grid.time), []).append(v)
        for (basin, time), variables in by_grid.items():
            chunk = store_rows // basin.chunk_size
            inputs, targets = (
                np.array([opened.columns[v] for v in variables if opened.variables[v].role == role], np.int64)
                for role in ("input", "target")
            )
            grids.append(
                BlockGrid(
                    dataset=number,
                    variables=tuple(variables),
                    basin=basin,
                    time=time,
                    x_columns=np.concatenate([inputs, num_inputs + inputs]) if masks else inputs,
                    y_columns=targets,
                    chunk=chunk,
                    line=_lines(chunk),
                )
            )
    return grids


def _lines(chunk: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each slot among those of its basin chunk, int64, in slot order."""
    order = np.argsort(chunk, kind="stable")
    count = np.unique(chunk, return_counts=True)[1]
    line = np.empty(chunk.size, np.int64)
    line[order] = np.arange(chunk.size) - np.repeat(np.cumsum(count) - count, count)
    return line


class BlockCache:
    """The blocks used last, decoded on demand; for one thread of one process.

    Parameters
    ----------
    datasets, layout, grids
        Open data sets, where their windows are, and their grids.
    x_scaling, y_scaling
        Per data set.
    masks
        Whether blocks hold masks.
    most_nbytes
        Bytes of blocks kept.
    """

    def __init__(
        self,
        *,
        datasets: Sequence[OpenDataset],
        layout: Layout,
        grids: Sequence[BlockGrid],
        x_scaling: Sequence[Scaling],
        y_scaling: Sequence[Scaling],
        masks: bool,
        most_nbytes: int,
    ) -> None:
        self._datasets, self._grids, self._masks, self._most_nbytes = datasets, grids, masks, most_nbytes
        self._scaling = {"input": x_scaling, "target": y_scaling}
        self._basins = [layout.basin[layout.dataset == number] for number in range(len(datasets))]
        self._kept: OrderedDict[tuple[int, int, int], Block] = OrderedDict()
        self.nbytes = 0
        self.raw = RawReader()

    def get(self, grid_number: int, basin_chunk: int, time_chunk: int) -> Block:
        """Return a block.

        Raises
        ------
        ConfigError
            One block is larger than what may be kept.
        StaleIndexError, ReadError, DamagedChunkError
            A chunk changed, or cannot be read or decoded.
        """
        key = grid_number, basin_chunk, time_chunk
        block = self._kept.get(key)
        if block is None:
            grid = self._grids[grid_number]
            slots = np.flatnonzero(grid.chunk == basin_chunk)
            start, stop = grid.time.bounds(time_chunk)
            width = grid.x_columns.size + grid.y_columns.size
            self._make_room(4 * slots.size * (stop - start) * width, grid)
            block = self._decode(grid, basin_chunk, slots, start, stop)
            self._kept[key] = block
            self.nbytes += block.nbytes
        self._kept.move_to_end(key)
        return block

    def _make_room(self, needed: int, grid: BlockGrid) -> None:
        if needed > self._most_nbytes:
            raise ConfigError(
                describe(
                    "memory_budget is too small",
                    where=f"WindowDataset, data set {self._datasets[grid.dataset].source.dataset_id}",
                    expected=f"at least {human_nbytes(needed)} for each worker process: one decoded chunk",
                    got=human_nbytes(self._most_nbytes),
                    fix="raise memory_budget, use fewer workers, or WindowLoader, which cuts chunks in pieces",
                )
            )
        while self._kept and self.nbytes + needed > self._most_nbytes:
            self.nbytes -= self._kept.popitem(last=False)[1].nbytes

    def _decode(self, grid: BlockGrid, basin_chunk: int, slots: NDArray[np.int64], start: int, stop: int) -> Block:
        opened = self._datasets[grid.dataset]
        basins = self._basins[grid.dataset][slots]
        first_row, last_row = grid.basin.bounds(basin_chunk)
        lines = opened.source.store_rows[basins] - first_row
        mended = opened.source.time_order is not None
        masks_from = grid.x_columns.size // 2
        x = np.empty((slots.size, stop - start, grid.x_columns.size), np.float32)
        y = np.empty((slots.size, stop - start, grid.y_columns.size), np.float32)
        places = {"input": 0, "target": 0}
        pieces = [
            ReadGroup(
                dataset=grid.dataset,
                variables=(v,),
                basin_start=first_row,
                basin_stop=last_row,
                step_start=start,
                # A mended time axis picks its steps among all stored ones.
                step_stop=opened.arrays[v].grid.time.extent if mended else stop,
                slots=slots,
            )
            for v in grid.variables
        ]
        fetches = [self.raw.fetch(opened, v, piece) for v, piece in zip(grid.variables, pieces, strict=True)]
        for v, piece, fetch in zip(grid.variables, pieces, fetches, strict=True):
            role = opened.variables[v].role
            column = places[role]
            places[role] += 1
            raw, lost = self.raw.read(opened, v, piece, fetch)
            fetch.drop()
            height = max(_DECODED_TOGETHER // max(raw.shape[1], 1), 1)
            for first in range(0, slots.size, height):
                part = slice(first, first + height)
                values = normalised(opened, v, raw[lines[part]], lost, basins[part], self._scaling[role][grid.dataset])
                if opened.source.time_order is not None:
                    values = np.take(values, opened.source.time_order, axis=1)
                if role == "target":
                    y[part, :, column] = values
                    continue
                gone = np.isnan(values)
                x[part, :, column] = np.where(gone, np.float32(0), values)
                if self._masks:
                    x[part, :, masks_from + column] = gone
        return Block(start=start, x=x, y=y)
