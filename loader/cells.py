"""Cells: what a process that keeps decoded chunks should serve together, one basin chunk × some time chunks.

Cells are to ``ChunkBatchSampler`` what tiles are to ``WindowLoader``, and are planned by the same code: a round is as
many cells as a worker's share of the memory budget holds. Legend: L input steps, S slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.blocks import BlockGrid
from headrace.loader.gather_windows import WindowTable
from headrace.loader.layout import Layout
from headrace.loader.schedule import EpochPlan
from headrace.loader.tiles import Tiles

_HALOS = 4
"""Starts that a cell covers, in halos of L - 1 steps: less would decode much more than is served."""
_CELLS_OF_ROUND = 4
"""Cells that a round should hold at least, so that it mixes basins and years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Cells in the order (data set, basin chunk, time) and the windows in them.

    Parameters
    ----------
    tiles
        The cells as the plan sees them: ``slot`` is the basin chunk, ``num_rows`` the decoded rows they need.
    column
        int64 [basin chunks], ``data set << 32 | basin chunk``.
    first_number
        int64 [M], number of the first window of each piece, a run of windows inside one cell; pieces lie in
        ``tiles.piece_cuts``.
    num_rows
        Decoded rows of all basin chunks together.
    """

    tiles: Tiles
    column: NDArray[np.int64]
    first_number: NDArray[np.int64]
    num_rows: int

    def windows_of(self, plan: EpochPlan, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pieces of a round: windows before each (int64 [M + 1]) and first window numbers (int64 [M])."""
        chosen, cuts = plan.tiles_of(number), self.tiles.piece_cuts
        count = cuts[chosen + 1] - cuts[chosen]
        piece = np.repeat(cuts[chosen] - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
        return np.append(0, np.cumsum(self.tiles.piece_windows[piece])), self.first_number[piece]


def cut_cells(
    table: WindowTable,
    layout: Layout,
    grids: Sequence[BlockGrid],
    slot_column: NDArray[np.int64],
    length: int,
    round_steps: int,
) -> Cells:
    """Cut every run of windows at the time chunks of its data set.

    Parameters
    ----------
    table, layout, grids
        Windows, slots and chunk grids.
    slot_column
        int64 [S], basin chunk of each slot as ``data set << 32 | basin chunk``.
    length
        L.
    round_steps
        Decoded rows that a round may hold.
    """
    column, of_slot, members = np.unique(slot_column, return_inverse=True, return_counts=True)
    dataset = column >> 32
    chunk, extent = (np.ones(int(dataset.max()) + 1, np.int64) for _ in range(2))
    for grid in grids:
        chunk[grid.dataset] = max(chunk[grid.dataset], grid.time.chunk_size)
        extent[grid.dataset] = max(extent[grid.dataset], grid.time.extent)
    largest = np.ones_like(chunk)
    np.maximum.at(largest, dataset, members)
    room = round_steps // (_CELLS_OF_ROUND * largest) - (length - 1) - chunk
    chunks = np.maximum(np.minimum(-(-_HALOS * (length - 1) // chunk), room // chunk), 1)
    steps = chunks * chunk  # starts that a cell of each data set covers

    run_column = of_slot[table.slot]
    run_steps = steps[dataset[run_column]]
    windows, begin, stride = np.diff(table.first_number), table.start.astype(np.int64), table.stride
    low, high = begin // run_steps, (begin + (windows - 1) * stride) // run_steps
    pieces = high - low + 1
    run = np.repeat(np.arange(begin.size), pieces)
    part = low[run] + np.arange(run.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    skipped = np.maximum(-(-(part * run_steps[run] - begin[run]) // stride), 0)
    reach = np.minimum(-(-((part + 1) * run_steps[run] - begin[run]) // stride), windows[run])
    kept = np.flatnonzero(reach > skipped)
    kept = kept[np.lexsort((run[kept], part[kept], run_column[run[kept]]))]
    run, part, skipped, count = run[kept], part[kept], skipped[kept], (reach - skipped)[kept]
    owner = run_column[run]
    head = np.flatnonzero(np.append(True, (np.diff(owner) != 0) | (np.diff(part) != 0)))
    cuts, total = np.append(head, run.size), np.append(0, np.cumsum(count))
    cell = owner[head]
    touched = -(-(steps + length - 1) // chunk) * chunk
    return Cells(
        tiles=Tiles(
            slot=cell,
            step_start=np.zeros(head.size, np.int64),
            step_stop=members[cell] * np.minimum(touched, extent)[dataset[cell]],
            num_windows=total[cuts[1:]] - total[cuts[:-1]],
            piece_cuts=cuts,
            piece_start=(begin[run] + skipped * stride).astype(np.int32),
            piece_windows=count,
            stride=stride,
        ),
        column=column,
        first_number=table.first_number[run] + skipped,
        num_rows=int((members * extent[dataset]).sum()),
    )


class CellOrder:
    """Positions of an epoch → window numbers; remembers the round it was in.

    Parameters
    ----------
    cells, plan
        What the plan orders, and the plan.
    """

    def __init__(self, cells: Cells, plan: EpochPlan) -> None:
        self._cells, self._plan, self._number = cells, plan, -1

    def numbers(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers of the windows at positions [start, stop), int64."""
        found = [np.zeros(0, np.int64)]
        for number in self._plan.rounds_of(start, stop) if start < stop else ():
            if number != self._number:
                self._number = number
                self._done, self._first = self._cells.windows_of(self._plan, number)
                self._order = self._plan.order_of(number)
            begin, end = self._plan.window_cuts[number : number + 2]
            place = np.arange(max(start, begin), min(stop, end)) - begin
            place = place if self._order is None else self._order(place)
            piece = np.searchsorted(self._done, place, side="right") - 1
            found.append(self._first[piece] + place - self._done[piece])
        return np.concatenate(found)
