"""Tiles: a basin × a long part of its time axis with the halo its last windows need.

Tiles are what rounds are made of. The rows of a tile are cut from its slot, so two tiles of a basin share the halo on
disk but not in the pool. Legend: L input steps, S slots.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout
from headrace.loader.windows import Windows

FIRST_PASS_ROUNDS = 8
"""Rounds of the first pass over a split that stays resident."""
_LEAST_TILES = 8
"""Tiles that a round should hold at least, however few basins there are."""
_ENOUGH_TILES = 64
"""Tiles of a round that are enough to stand for a whole split: fewer basins are cut finer. Models learnt less from
rounds that held one long stretch of each of 16 basins (docs/adr/0003-tiles-and-rounds.md)."""
_CUT_TOGETHER = 1 << 18
"""Pieces cut in one turn; bounds the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Tiles in natural order and the window runs inside them, struct of arrays.

    Parameters
    ----------
    slot
        int64 [N], ascending: slot of the tile.
    step_start, step_stop
        int [N], steps that the tile's windows need; int32 where they come from :func:`cut_tiles`.
    num_windows
        int64 [N].
    piece_cuts
        int64 [N + 1]: pieces of tile i are [piece_cuts[i], piece_cuts[i + 1]).
    piece_start
        int32 [M], first start of each piece (a run of starts inside one tile).
    piece_windows
        int [M], windows of each piece; int32 where they come from :func:`cut_tiles`.
    stride
        Steps between starts.
    """

    slot: NDArray[np.int64]
    step_start: NDArray[Any]
    step_stop: NDArray[Any]
    num_windows: NDArray[np.int64]
    piece_cuts: NDArray[np.int64]
    piece_start: NDArray[np.int32]
    piece_windows: NDArray[Any]
    stride: int

    @property
    def part(self) -> NDArray[np.int64]:
        """int64 [N], number of each tile within its slot."""
        used = np.bincount(self.slot)
        return np.arange(self.slot.size) - (np.cumsum(used) - used)[self.slot]

    @property
    def num_parts(self) -> NDArray[np.int64]:
        """int64 [N], how many tiles the slot has."""
        return np.bincount(self.slot)[self.slot]

    @property
    def num_rows(self) -> NDArray[np.int64]:
        """int64 [N], pool rows of each tile."""
        rows: NDArray[np.int64] = np.subtract(self.step_stop, self.step_start, dtype=np.int64)
        return rows


def tile_starts(layout: Layout, length: int, round_steps: int) -> int:
    """Return how many consecutive start positions one tile covers.

    A split that fits into one round is cut so that :data:`FIRST_PASS_ROUNDS` rounds each hold a part of every basin.
    Otherwise a round should hold one tile of every basin and :data:`_ENOUGH_TILES` tiles, as long as the halo of L - 1
    steps stays below half a tile and a round still has :data:`_LEAST_TILES` tiles.
    """
    extent = int((layout.last - layout.first).max(initial=length)) - length + 1
    if layout.num_rows <= round_steps:
        return max(-(-extent // FIRST_PASS_ROUNDS), 1)
    halo = length - 1
    wanted = round_steps // max(layout.num_slots, _ENOUGH_TILES) - halo
    most = round_steps // _LEAST_TILES - halo
    return int(np.clip(wanted, min(max(halo, 64), max(most, 1)), max(most, 1)))


def cut_tiles(windows: Windows, layout: Layout, length: int, starts_per_tile: int) -> Tiles:
    """Cut every slot into parts of equal numbers of start positions and every run at the cuts."""
    extent = layout.last - layout.first - length + 1
    parts = -(-extent // starts_per_tile)
    size = -(-extent // np.maximum(parts, 1))
    runs_before = np.searchsorted(layout.run_slot, np.arange(layout.num_slots + 1))
    effort = np.cumsum(parts) + runs_before[1:]  # no slot has more pieces than parts and runs
    edges = np.searchsorted(effort, np.arange(_CUT_TOGETHER, int(effort.max(initial=0)), _CUT_TOGETHER))
    slots = np.concatenate([[0], np.unique(edges[edges > 0]), [layout.num_slots]])
    blocks = [
        _cut_runs(windows, layout, size, slice(runs_before[a], runs_before[b])) for a, b in pairwise(slots.tolist())
    ]
    slot, pieces, start, count = (np.concatenate([b.pop(0) for b in blocks]) for _ in range(4))
    cuts = np.append(0, np.cumsum(pieces))
    del pieces
    total = np.append(0, np.cumsum(count))
    num_windows = np.diff(total[cuts])
    del total
    final = cuts[1:] - 1
    return Tiles(
        slot=slot,
        step_start=start[cuts[:-1]],
        step_stop=start[final] + (count[final] - 1) * np.int32(windows.stride) + np.int32(length),
        num_windows=num_windows,
        piece_cuts=cuts,
        piece_start=start,
        piece_windows=count,
        stride=windows.stride,
    )


def _cut_runs(windows: Windows, layout: Layout, size: NDArray[np.int64], rows: slice) -> list[NDArray[Any]]:
    """Cut the runs of some slots, all runs of each.

    Returns
    -------
    list of NDArray
        Of each tile its slot (int64) and its pieces (int64); of each piece its first start and its windows (int32).
    """
    stride, slot = windows.stride, layout.run_slot[rows]
    begin, num_windows = windows.start[rows].astype(np.int64), windows.num_windows[rows]
    first, size = layout.first[slot], size[slot]
    low, high = (begin - first) // size, (begin + (num_windows - 1) * stride - first) // size
    pieces = high - low + 1
    run = np.repeat(np.arange(begin.size), pieces)
    part = low[run] + np.arange(run.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    edge = first[run] + part * size[run]
    skipped = np.maximum(-(-(edge - begin[run]) // stride), 0)
    reach = np.minimum(-(-(edge + size[run] - begin[run]) // stride), num_windows[run])
    keep = reach > skipped
    run, part, skipped, reach = run[keep], part[keep], skipped[keep], reach[keep]
    owner = slot[run]
    new = np.append(True, (owner[1:] != owner[:-1]) | (part[1:] != part[:-1])) if run.size else np.zeros(0, dtype=bool)
    head = np.flatnonzero(new)
    start = (begin[run] + skipped * stride).astype(np.int32)
    return [owner[head], np.diff(np.append(head, run.size)), start, (reach - skipped).astype(np.int32)]
