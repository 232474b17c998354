"""Which windows of a data set an epoch takes: whole passes first, then the next stretch of an endless row of passes.

A pass is every window of the data set once. Its tiles are in an order that holds every basin evenly. Below one pass the
epochs take stretch after stretch, so that every window is used before any is used again, over as many epochs as that
takes. Where a stretch is short against the tiles that memory holds, it takes every k-th window of many tiles rather
than all windows of a few: k slices of a tile then follow each other over the epochs.

Legend: E stretches.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.permutation import derive_key, hash_floats
from headrace.loader.sampling import Stretches
from headrace.loader.schedule import random_ranks

_WHOLE, _REST, _ORDER, _TURNS, _SLICES = range(20, 25)
"""What a key is for; apart from those of the schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetWindows:
    """What passes over one data set are made of.

    Parameters
    ----------
    number
        Position of the data set.
    stretches
        Its windows.
    slot, rows
        int64 [E], basin and pool rows of each stretch's tile.
    room
        Pool rows that this data set may have in a round.
    """

    number: int
    stretches: Stretches
    slot: NDArray[np.int64]
    rows: NDArray[np.int64]
    room: int


def windows_of_epoch(data: DatasetWindows, quota: int, seed: int, epoch: int) -> tuple[Stretches, NDArray[np.int64]]:
    """Return what an epoch takes in order of use, together ``quota`` windows, and the pass that each stretch is of."""
    total = int(data.stretches.count.sum())
    if total == 0 or quota == 0:
        return data.stretches.take(np.zeros(0, np.int64)), np.zeros(0, np.int64)
    whole, rest = divmod(quota, total)
    order = _orders(data.slot, whole, derive_key(seed, _WHOLE, data.number, epoch))
    taken = [data.stretches.take(order)]
    begin, end = epoch * rest, (epoch + 1) * rest
    while begin < end:
        number, first = divmod(begin, total)
        last = min(total, first + end - begin)
        taken.append(_stretch(data, derive_key(seed, _REST, data.number, number), first, last, rest))
        begin += last - first
    turns = np.repeat(np.arange(whole), data.slot.size)
    later = [np.full(part.tile.size, whole + n) for n, part in enumerate(taken[1:])]
    return joined(taken), np.concatenate([turns, *later])


def _orders(slot: NDArray[np.int64], passes: int, key: int) -> NDArray[np.int64]:
    """Return the order of stretches in each of several passes, int64 [passes · E].

    The stretches of a basin, in random order, are spread evenly over the pass from an offset on; the basins' offsets,
    in random order, are spread evenly too.
    """
    basins, of_basin, parts = np.unique(slot, return_inverse=True, return_counts=True)
    turn = np.repeat(np.arange(passes), slot.size)
    basin = turn * basins.size + np.tile(of_basin, passes)
    rank = random_ranks(basin, derive_key(key, _ORDER))
    offset = random_ranks(np.repeat(np.arange(passes), basins.size), derive_key(key, _TURNS)) / basins.size
    place = turn + (rank + offset[basin]) / np.tile(parts[of_basin], passes)
    return np.argsort(place, kind="stable") % max(slot.size, 1)


def _stretch(data: DatasetWindows, key: int, begin: int, end: int, usual: int) -> Stretches:
    """Return positions [begin, end) of a pass; stretches are ``usual`` windows long."""
    order = _orders(data.slot, 1, key)
    ordered = data.stretches.take(order)
    parts: list[Stretches] = []
    for group, slices in _groups(data.rows[order], ordered.count, data.room, usual):
        own = ordered.take(group)
        size = int(own.count.sum())
        if begin < size and end > 0:
            parts += _slices(own, slices, derive_key(key, _SLICES, int(group[0])), max(begin, 0), min(end, size))
        begin, end = begin - size, end - size
    return joined(parts)


def _groups(
    rows: NDArray[np.int64], count: NDArray[np.int64], room: int, usual: int
) -> list[tuple[NDArray[np.int64], int]]:
    """Cut a pass into groups of stretches that a round has room for, each with the number of slices it is taken in."""
    number = (np.cumsum(rows) - rows) // max(room - int(rows.max(initial=0)), 1)
    cuts = np.flatnonzero(np.diff(number)) + 1
    if usual * (cuts.size + 1) >= int(count.sum()):  # a stretch fills whole rounds
        return [(np.arange(rows.size), 1)]
    groups = np.split(np.arange(rows.size), cuts)
    return [(group, max(-(-int(count[group].sum()) // usual), 1)) for group in groups]


def _slices(own: Stretches, slices: int, key: int, begin: int, end: int) -> Iterator[Stretches]:
    """Yield positions [begin, end) of stretches that are served in slices, every ``slices``-th window of each in turn.

    Which of its windows a stretch begins with is random, so that short ones do not all fall into the first slice.
    """
    turn = (hash_floats(key, own.count.size) * slices).astype(np.int64)
    low, high = 0, slices  # the slice that holds ``begin``
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _before(own.count, turn, slices, middle) <= begin else (low, middle)
    done = _before(own.count, turn, slices, low)
    while done < end:
        first = (low + turn) % slices
        count = np.maximum(-(-(own.count - first) // slices), 0)
        stop = done + np.cumsum(count)
        skipped = np.clip(begin - (stop - count), 0, count)
        left = np.clip(end - (stop - count), 0, count) - skipped
        used = left > 0
        yield Stretches(
            tile=own.tile[used],
            first=(own.first + (first + skipped * slices) * own.step)[used],
            step=own.step[used] * slices,
            count=left[used],
        )
        done, low = int(stop[-1]), low + 1


def _before(count: NDArray[np.int64], turn: NDArray[np.int64], slices: int, number: int) -> int:
    """Return how many windows lie in slices below ``number``."""
    rest = count % slices
    straight = np.maximum(np.minimum(rest, turn + number) - turn, 0)
    around = np.clip(turn + number - slices, 0, rest)
    return int((count // slices * number + straight + around).sum())


def joined(parts: list[Stretches]) -> Stretches:
    """Return stretches one after the other."""
    columns = {n: np.concatenate([getattr(p, n) for p in parts]) for n in ("tile", "first", "step", "count")}
    return Stretches(**columns)
