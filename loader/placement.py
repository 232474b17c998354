"""Where the steps of slots go: stretches of a slot's steps, each at consecutive rows of one pair of arrays.

A resident or spilled split has one stretch per slot, a round that is read again has one per tile.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout

_Index = slice | NDArray[np.int64]
Stretch = tuple[int, _Index, _Index]
"""Line of a block, the rows it goes to, and which of its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Stretches in ascending order of their slot, struct of arrays.

    Parameters
    ----------
    slot
        int64 [N].
    first, last
        int64 [N], steps [first, last).
    base
        int64 [N], row of ``first``.
    """

    slot: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    base: NDArray[np.int64]

    def of_slots(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the stretches of ascending slots, int64 [M], and where those of each slot begin, int64 [slots + 1]."""
        low, high = np.searchsorted(self.slot, slots), np.searchsorted(self.slot, slots, side="right")
        cuts = np.append(0, np.cumsum(high - low))
        return np.repeat(low - cuts[:-1], high - low) + np.arange(cuts[-1]), cuts

    def only_placed(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of some ascending slots that have a stretch."""
        return slots[np.diff(self.of_slots(slots)[1]) > 0]


def place_all(layout: Layout) -> Placement:
    """Place every slot where the layout has it."""
    return Placement(slot=np.arange(layout.num_slots), first=layout.first, last=layout.last, base=layout.base[:-1])


def place_stretches(
    slot: NDArray[np.int64], first: NDArray[np.integer[Any]], last: NDArray[np.integer[Any]], base: NDArray[np.int64]
) -> Placement:
    """Place stretches given in any order."""
    order = np.argsort(slot, kind="stable")
    begin, end = first[order].astype(np.int64), last[order].astype(np.int64)
    return Placement(slot=slot[order], first=begin, last=end, base=base[order])


def stretches_of(
    where: Placement,
    slots: NDArray[np.int64],
    step_start: int,
    step_stop: int,
    time_order: NDArray[np.int64] | None,
) -> list[Stretch]:
    """Return where the values of a block go: one line per slot, one column per stored step [step_start, step_stop).

    Parameters
    ----------
    where
        The destination.
    slots
        Ascending, those of the block.
    step_start, step_stop
        Stored steps of the block.
    time_order
        Stored step of each step, where the time axis was mended.
    """
    stretches, cuts = where.of_slots(slots)
    line = np.repeat(np.arange(slots.size), np.diff(cuts))
    first, last = where.first[stretches], where.last[stretches]
    base = where.base[stretches] - first
    if time_order is not None:
        steps = np.flatnonzero((time_order >= step_start) & (time_order < step_stop))
        columns = time_order[steps] - step_start
        inside = [slice(*np.searchsorted(steps, pair).tolist()) for pair in zip(first, last, strict=True)]
        return [(n, b + steps[s], columns[s]) for n, b, s in zip(line.tolist(), base.tolist(), inside, strict=True)]
    first, last = np.maximum(first, step_start), np.minimum(last, step_stop)
    every = zip(line.tolist(), base.tolist(), first.tolist(), last.tolist(), strict=True)
    return [(n, slice(b + a, b + z), slice(a - step_start, z - step_start)) for n, b, a, z in every if a < z]
