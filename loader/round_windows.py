"""Which windows a round of a plan holds and where they lie; the windows at any positions of an epoch. Reads nothing."""

import numpy as np
from numpy.typing import NDArray

from headrace.loader.pool import RoundWindows
from headrace.loader.sampling import Stretches
from headrace.loader.schedule import EpochPlan
from headrace.loader.tiles import Tiles


def windows_of_round(tiles: Tiles, plan: EpochPlan, number: int, shift: NDArray[np.int64]) -> RoundWindows:
    """Collect the windows of a round's tiles.

    Parameters
    ----------
    tiles, plan, number
        All tiles of the split, the epoch, and the round.
    shift
        int64, per tile of the round what turns a store step into its pool row.
    """
    chosen = plan.tiles_of(number)
    if plan.uses is not None:
        own = plan.uses.stretches.take(np.arange(plan.uses.round.size)[plan.uses.of_round(number)])
        return _windows_of_stretches(tiles, own, shift[np.searchsorted(chosen, own.tile)])
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


def _windows_of_stretches(tiles: Tiles, own: Stretches, shift: NDArray[np.int64]) -> RoundWindows:
    """Collect the windows of stretches; ``shift`` is int64 per stretch."""
    cuts = tiles.piece_cuts
    pieces = cuts[own.tile + 1] - cuts[own.tile]
    use = np.repeat(np.arange(own.tile.size), pieces)
    piece = np.arange(use.size) + np.repeat(cuts[own.tile] - (np.cumsum(pieces) - pieces), pieces)
    before = np.append(0, np.cumsum(tiles.piece_windows))
    begin = before[piece] - before[cuts[own.tile[use]]]  # windows of the tile before the piece
    first, step, count = own.first[use], own.step[use], own.count[use]
    low = np.clip(-(-(begin - first) // step), 0, count)
    size = np.clip(-(-(begin + tiles.piece_windows[piece] - first) // step), 0, count) - low
    kept = size > 0
    use, piece, size, step = use[kept], piece[kept], size[kept], step[kept]
    start = tiles.piece_start[piece] + ((first[kept] + low[kept] * step - begin[kept]) * tiles.stride)
    return RoundWindows(
        done=np.append(0, np.cumsum(size)),
        row=start + shift[use],
        start=start.astype(np.int32),
        slot=tiles.slot[own.tile[use]],
        stride=step * tiles.stride,
    )


def windows_at(
    tiles: Tiles, plan: EpochPlan, positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return slot (int64) and start (int32) of the windows at positions of an epoch, in the positions' order."""
    slot, start = np.empty(positions.size, np.int64), np.empty(positions.size, np.int32)
    round_of = np.searchsorted(plan.window_cuts, positions, side="right") - 1
    by_round = np.argsort(round_of, kind="stable")
    numbers, first = np.unique(round_of[by_round], return_index=True)
    for number, mine in zip(numbers.tolist(), np.split(by_round, first[1:]), strict=True):
        order, window = plan.order_of(number), positions[mine] - plan.window_cuts[number]
        if order is not None:
            window = order(window)
        held = windows_of_round(tiles, plan, number, np.zeros(plan.tiles_of(number).size, np.int64))
        piece = np.searchsorted(held.done, window, side="right") - 1
        slot[mine] = held.slot[piece]
        start[mine] = held.start[piece] + held.ahead(window, piece)
    return slot, start
