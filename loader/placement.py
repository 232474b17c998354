"""Where the steps of slots go: stretches of a slot's steps, each at consecutive rows of one pair of arrays.

A resident or spilled split has one stretch per slot, a round that is read again has one per tile.
"""

from bisect import bisect_left
from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Where the values of a block go whose steps are as stored: one line per slot, one column per step.

    Parameters
    ----------
    line
        int64 [N], ascending.
    first, last
        int64 [N], columns [first, last) of the line.
    row
        int64 [N], where the first of them goes; the others follow it.
    """

    line: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    row: NDArray[np.int64]

    def part(self, start: int, stop: int) -> "Lines":
        """Return what holds for the lines [start, stop), numbered from 0 on."""
        inside = slice(*np.searchsorted(self.line, (start, stop)).tolist())
        return Lines(
            line=self.line[inside] - start, first=self.first[inside], last=self.last[inside], row=self.row[inside]
        )

    def __iter__(self) -> Iterator[Stretch]:
        """Yield stretch by stretch."""
        every = (values.tolist() for values in (self.line, self.first, self.last, self.row))
        for line, first, last, row in zip(*every, strict=True):
            yield line, slice(row, row + last - first), slice(first, last)


@dataclass(frozen=True, slots=True)
class Scattered:
    """The same for steps of a mended time axis; stretches in order of their lines."""

    stretches: list[Stretch]

    def part(self, start: int, stop: int) -> "Scattered":
        """Return what holds for the lines [start, stop), numbered from 0 on."""
        low, high = (bisect_left(self.stretches, edge, key=lambda stretch: stretch[0]) for edge in (start, stop))
        return Scattered([(line - start, to, columns) for line, to, columns in self.stretches[low:high]])

    def __iter__(self) -> Iterator[Stretch]:
        """Yield stretch by stretch."""
        return iter(self.stretches)


def lines_of(where: Placement, slots: NDArray[np.int64], step_start: int, step_stop: int) -> Lines:
    """Return where the values of a block go: one line per slot, one column per step [step_start, step_stop).

    Parameters
    ----------
    where
        The destination.
    slots
        Ascending, those of the block.
    step_start, step_stop
        Steps of the block.
    """
    stretches, cuts = where.of_slots(slots)
    begin = where.first[stretches]
    first, last = np.maximum(begin, step_start), np.minimum(where.last[stretches], step_stop)
    line, row = np.repeat(np.arange(slots.size), np.diff(cuts)), where.base[stretches] + first - begin
    some = first < last
    return Lines(line=line[some], first=first[some] - step_start, last=last[some] - step_start, row=row[some])


def scattered(
    where: Placement, slots: NDArray[np.int64], step_start: int, step_stop: int, time_order: NDArray[np.int64]
) -> Scattered:
    """Return what :func:`lines_of` does for stored steps [step_start, step_stop) of a mended time axis.

    Parameters
    ----------
    where, slots, step_start, step_stop
        As there.
    time_order
        Stored step of each step.
    """
    stretches, cuts = where.of_slots(slots)
    line = np.repeat(np.arange(slots.size), np.diff(cuts)).tolist()
    first, last = where.first[stretches], where.last[stretches]
    base = (where.base[stretches] - first).tolist()
    steps = np.flatnonzero((time_order >= step_start) & (time_order < step_stop))
    columns = time_order[steps] - step_start
    inside = [slice(*np.searchsorted(steps, pair).tolist()) for pair in zip(first, last, strict=True)]
    return Scattered([(n, b + steps[s], columns[s]) for n, b, s in zip(line, base, inside, strict=True)])
