"""Tiles: a basin × a long part of its time axis with the halo its last windows need.

Tiles are what rounds are made of. The rows of a tile are cut from its slot, so two tiles of a basin share the halo on
disk but not in the pool. Legend: L input steps, S slots.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout
from headrace.loader.windows import Windows

FIRST_PASS_ROUNDS = 8
"""Rounds of the first pass over a split that stays resident."""
_LEAST_TILES = 8
"""Tiles that a round should hold at least, however few basins there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Tiles in natural order and the window runs inside them, struct of arrays.

    Parameters
    ----------
    slot, part, num_parts
        int64 [N]: slot of the tile, its number within the slot, and how many tiles the slot has.
    step_start, step_stop
        int64 [N], steps that the tile's windows need.
    num_windows
        int64 [N].
    piece_cuts
        int64 [N + 1]: pieces of tile i are [piece_cuts[i], piece_cuts[i + 1]).
    piece_start
        int32 [M], first start of each piece (a run of starts inside one tile).
    piece_windows
        int64 [M], windows of each piece.
    stride
        Steps between starts.
    """

    slot: NDArray[np.int64]
    part: NDArray[np.int64]
    num_parts: NDArray[np.int64]
    step_start: NDArray[np.int64]
    step_stop: NDArray[np.int64]
    num_windows: NDArray[np.int64]
    piece_cuts: NDArray[np.int64]
    piece_start: NDArray[np.int32]
    piece_windows: NDArray[np.int64]
    stride: int

    @property
    def num_rows(self) -> NDArray[np.int64]:
        """int64 [N], pool rows of each tile."""
        return self.step_stop - self.step_start


def tile_starts(layout: Layout, length: int, round_steps: int) -> int:
    """Return how many consecutive start positions one tile covers.

    A split that fits into one round is cut so that :data:`FIRST_PASS_ROUNDS` rounds each hold a part of every basin.
    Otherwise a round should hold one tile of every basin, as long as the halo of L - 1 steps stays below half a tile
    and a round still has :data:`_LEAST_TILES` tiles.
    """
    extent = int((layout.last - layout.first).max(initial=length)) - length + 1
    if layout.num_rows <= round_steps:
        return max(-(-extent // FIRST_PASS_ROUNDS), 1)
    halo = length - 1
    wanted = round_steps // max(layout.num_slots, 1) - halo
    most = round_steps // _LEAST_TILES - halo
    return int(np.clip(wanted, min(max(halo, 64), max(most, 1)), max(most, 1)))


def cut_tiles(windows: Windows, layout: Layout, length: int, starts_per_tile: int) -> Tiles:
    """Cut every slot into parts of equal numbers of start positions and every run at the cuts."""
    stride = windows.stride
    extent = layout.last - layout.first - length + 1
    parts = -(-extent // starts_per_tile)
    size = -(-extent // np.maximum(parts, 1))
    slot = layout.run_slot
    begin = windows.start.astype(np.int64)
    final = begin + (windows.num_windows - 1) * stride
    low, high = (begin - layout.first[slot]) // size[slot], (final - layout.first[slot]) // size[slot]
    pieces = high - low + 1
    run = np.repeat(np.arange(begin.size), pieces)
    part = low[run] + np.arange(run.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    edge = layout.first[slot[run]] + part * size[slot[run]]
    skipped = np.maximum(-(-(edge - begin[run]) // stride), 0)
    reach = np.minimum(-(-(edge + size[slot[run]] - begin[run]) // stride), windows.num_windows[run])
    keep = reach > skipped
    run, part, skipped, reach = run[keep], part[keep], skipped[keep], reach[keep]
    piece_start = begin[run] + skipped * stride
    piece_windows = reach - skipped
    key = slot[run] * (int(parts.max(initial=0)) + 1) + part
    new = np.append(True, key[1:] != key[:-1]) if key.size else np.zeros(0, dtype=bool)
    head = np.flatnonzero(new)
    cuts = np.append(head, key.size)
    total = np.append(0, np.cumsum(piece_windows))
    last_start = piece_start + (piece_windows - 1) * stride
    tile_slot = slot[run][head]
    used = np.bincount(tile_slot, minlength=layout.num_slots)
    first_of_slot = np.cumsum(used) - used
    return Tiles(
        slot=tile_slot,
        part=np.arange(head.size) - first_of_slot[tile_slot],
        num_parts=used[tile_slot],
        step_start=piece_start[head],
        step_stop=last_start[cuts[1:] - 1] + length,
        num_windows=total[cuts[1:]] - total[cuts[:-1]],
        piece_cuts=cuts,
        piece_start=piece_start.astype(np.int32),
        piece_windows=piece_windows,
        stride=stride,
    )
