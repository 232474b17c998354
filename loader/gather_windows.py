"""Numbers of windows → their values, cut from blocks.

Windows are numbered in natural order: data set, basin, start. Legend: B windows, L input steps, P target steps, W
warm-up steps, Vx inputs, Vs statics, Vy targets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.loader.batch import Batch
from headrace.loader.blocks import BlockCache, BlockGrid
from headrace.loader.layout import Layout
from headrace.loader.windows import Windows
from headrace.schemas.windows import WindowSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTable:
    """Where every window is; runs of windows, never one entry per window.

    Parameters
    ----------
    first_number
        int64 [R + 1], number of the first window of each run; the last entry is the number of windows.
    start
        int32 [R], step of that window.
    slot
        int64 [R], its slot in the layout.
    stride
        Steps between windows of a run.
    """

    first_number: NDArray[np.int64]
    start: NDArray[np.int32]
    slot: NDArray[np.int64]
    stride: int

    @classmethod
    def of(cls, windows: Windows, layout: Layout) -> "WindowTable":
        """Return the table of a split."""
        first = np.append(0, np.cumsum(windows.num_windows)).astype(np.int64)
        return cls(first_number=first, start=windows.start, slot=layout.run_slot, stride=windows.stride)

    def __len__(self) -> int:
        """Return the number of windows."""
        return int(self.first_number[-1])

    def locate(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return slot and start of windows, int64 [B] each."""
        run = np.searchsorted(self.first_number, numbers, side="right") - 1
        return self.slot[run], self.start[run] + (numbers - self.first_number[run]) * self.stride


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What all windows of a loader have in common.

    Parameters
    ----------
    window
        Shape in steps.
    x_rows, y_rows
        float32 [data sets, Vx] and [data sets, Vy]: values of the variables that a data set lacks.
    statics
        float32 [slots, Vs].
    """

    window: WindowSpec
    x_rows: NDArray[np.float32]
    y_rows: NDArray[np.float32]
    statics: NDArray[np.float32]


class WindowGather:
    """Make batches of windows in one process.

    Parameters
    ----------
    layout, grids, cache
        Slots, chunk grids, and the blocks in memory.
    template
        What surrounds the values.
    """

    def __init__(self, layout: Layout, grids: Sequence[BlockGrid], cache: BlockCache, template: Template) -> None:
        self._layout, self._grids, self._cache, self._template = layout, grids, cache, template
        self._first_slot = np.searchsorted(layout.dataset, np.arange(template.x_rows.shape[0]))

    def __call__(self, slot: NDArray[np.int64], start: NDArray[np.int64]) -> Batch:
        """Return the windows at slots and starts, int64 [B] each; every block is asked for once."""
        window, template = self._template.window, self._template
        dataset = self._layout.dataset[slot]
        x = np.repeat(template.x_rows[dataset][:, None], window.length, axis=1)
        y = np.repeat(template.y_rows[dataset][:, None], window.target_length, axis=1)
        for number, grid in enumerate(self._grids):
            mine = np.flatnonzero(dataset == grid.dataset)
            own, first_step = slot[mine] - self._first_slot[grid.dataset], start[mine]
            for basin_chunk, time_chunk, members in _by_block(grid, grid.chunk[own], first_step, window.length):
                block = self._cache.get(number, basin_chunk, time_chunk)
                places, lines, begin = mine[members], grid.line[own[members]], first_step[members] - block.start
                _cut(block.x, x, grid.x_columns, places, lines, begin)
                _cut(block.y, y, grid.y_columns, places, lines, begin + window.warmup_length)
        return Batch(
            x=torch.from_numpy(x),
            static=torch.from_numpy(template.statics[slot]),
            y=torch.from_numpy(y),
            dataset=torch.from_numpy(dataset.astype(np.int32)),
            basin=torch.from_numpy(self._layout.basin[slot]),
            start=torch.from_numpy(start.astype(np.int32)),
        )


def _by_block(
    grid: BlockGrid, chunk: NDArray[np.int64], start: NDArray[np.int64], length: int
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Yield (basin chunk, time chunk, windows that touch it) for windows of one data set, int64 [B] each."""
    low = start // grid.time.chunk_size
    count = (start + length - 1) // grid.time.chunk_size - low + 1
    item = np.repeat(np.arange(start.size), count)
    time_chunk = low[item] + np.arange(item.size) - np.repeat(np.cumsum(count) - count, count)
    order = np.lexsort((time_chunk, chunk[item]))
    item, time_chunk = item[order], time_chunk[order]
    changes = (np.diff(chunk[item]) != 0) | (np.diff(time_chunk) != 0)
    cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), item.size] if item.size else []
    for first, stop in pairwise(cuts):
        yield int(chunk[item[first]]), int(time_chunk[first]), item[first:stop]


def _cut(
    block: NDArray[np.float32],
    out: NDArray[np.float32],
    columns: NDArray[np.int64],
    places: NDArray[np.int64],
    lines: NDArray[np.int64],
    begin: NDArray[np.int64],
) -> None:
    """Copy what a block [S, T, V] holds of windows to their places in ``out`` [B, N, columns]."""
    if columns.size == 0:
        return
    length, steps = out.shape[1], block.shape[1]
    consecutive = bool((np.diff(columns) == 1).all())
    chosen = slice(int(columns[0]), int(columns[-1]) + 1) if consecutive else columns
    for place, line, first in zip(places.tolist(), lines.tolist(), begin.tolist(), strict=True):
        low, high = max(first, 0), min(first + length, steps)
        if low < high:
            out[place][low - first : high - first, chosen] = block[line, low:high]
