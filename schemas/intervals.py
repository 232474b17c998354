"""Sets of half-open step intervals per basin, with the few operations the window rule needs.

All basins are handled at once: an interval is a row number and [start, stop) in int64, and every operation is a few
NumPy calls on the flat arrays, so 10⁷ intervals take seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Intervals of many rows, sorted by (row, start), disjoint and not adjacent within a row.

    Parameters
    ----------
    row
        int64 [N], basin of each interval.
    start, stop
        int64 [N], steps, stop exclusive.
    """

    row: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @classmethod
    def same_for(cls, rows: NDArray[np.integer], start: int, stop: int) -> "Intervals":
        """Return the same interval in every row; none where it is empty."""
        row = rows.astype(np.int64) if stop > start else np.zeros(0, np.int64)
        return cls(row=row, start=np.full(row.shape, start, np.int64), stop=np.full(row.shape, stop, np.int64))

    @classmethod
    def overlay(cls, sets: Sequence["Intervals"], *, at_least: int) -> "Intervals":
        """Return the steps covered by at least ``at_least`` of the sets, as maximal intervals.

        ``at_least=len(sets)`` is the intersection, ``at_least=1`` the union. Overlapping or adjacent intervals
        within one set count once per interval, so each set must be disjoint for the intersection.
        """
        row = np.concatenate([s.row for s in sets])
        start = np.concatenate([s.start for s in sets])
        stop = np.concatenate([s.stop for s in sets])
        if row.size == 0:
            return cls(row=row, start=start, stop=stop)
        low = min(int(start.min()), 0)
        span = int(stop.max()) - low + 2
        base = row * span - low
        position = np.concatenate([base + start, base + stop])
        change = np.repeat(np.array([1, -1], dtype=np.int64), row.size)
        order = np.argsort(position, kind="stable")
        position, change = position[order], change[order]
        last = np.append(position[1:] != position[:-1], True)
        covered = np.cumsum(change)[last] >= at_least
        position = position[last]
        edge = np.flatnonzero(covered != np.append(False, covered[:-1]))
        begin, end = position[edge[::2]], position[edge[1::2]]
        rows = begin // span
        return cls(row=rows, start=begin - rows * span + low, stop=end - rows * span + low)

    def shifted(self, start_by: int, stop_by: int) -> "Intervals":
        """Move every start and stop, drop what becomes empty and merge what overlaps."""
        start, stop = self.start + start_by, self.stop + stop_by
        keep = stop > start
        moved = Intervals(row=self.row[keep], start=start[keep], stop=stop[keep])
        return Intervals.overlay([moved], at_least=1) if stop_by > start_by else moved
