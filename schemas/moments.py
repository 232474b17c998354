"""Count, mean and sum of squared deviations, merged without ever forming E[x²] - mean².

The merge is that of Chan, Golub and LeVeque (1983), "Algorithms for computing the sample variance"; the standard
deviation is the population one. Folds run left to right in a given order, so that the bytes of a result do not depend
on who computed which part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Moments of many groups, struct of arrays.

    Parameters
    ----------
    count
        int64 [N], observed values.
    mean, m2
        float64 [N], mean (units of the values) and sum of squared deviations (units²); 0 where count is 0.
    low, high
        float64 [N], smallest and largest value; NaN where count is 0.
    """

    count: NDArray[np.int64]
    mean: NDArray[np.float64]
    m2: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def empty(cls, size: int) -> "Moments":
        """Return groups without values."""
        nan = np.full(size, np.nan)
        return cls(count=np.zeros(size, np.int64), mean=np.zeros(size), m2=np.zeros(size), low=nan, high=nan.copy())

    @classmethod
    def of(cls, values: NDArray[np.floating]) -> "Moments":
        """Return the moments of each row of ``values`` [N, T]; NaN is missing.

        A row's bits depend on its values alone: not on its neighbours, nor on the order of the block in memory.
        """
        wide = np.ascontiguousarray(values, dtype=np.float64)  # NumPy sums a row otherwise in another order
        seen = ~np.isnan(wide)
        count = seen.sum(axis=1)
        safe = np.maximum(count, 1)
        mean = np.where(seen, wide, 0.0).sum(axis=1) / safe
        deviation = np.where(seen, wide - mean[:, None], 0.0)
        m2 = np.einsum("nt,nt->n", deviation, deviation)
        # + 0.0 makes one zero of the two: which of -0.0 and 0.0 is smaller would depend on the place in the block.
        low = np.where(seen, wide, np.inf).min(axis=1, initial=np.inf) + 0.0
        high = np.where(seen, wide, -np.inf).max(axis=1, initial=-np.inf) + 0.0
        none = count == 0
        return cls(
            count=count.astype(np.int64),
            mean=mean,
            m2=m2,
            low=np.where(none, np.nan, low),
            high=np.where(none, np.nan, high),
        )

    @property
    def std(self) -> NDArray[np.float64]:
        """Population standard deviation, float64 [N]; NaN where count is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self.m2 / self.count)

    def __len__(self) -> int:
        """Return the number of groups."""
        return int(self.count.size)

    def take(self, index: NDArray[np.integer] | NDArray[np.bool_]) -> "Moments":
        """Return the selected groups."""
        return Moments(
            count=self.count[index],
            mean=self.mean[index],
            m2=self.m2[index],
            low=self.low[index],
            high=self.high[index],
        )

    def merge(self, other: "Moments") -> "Moments":
        """Merge group by group with groups that come after, by the formula of Chan et al."""
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        delta = other.mean - self.mean
        mean = self.mean + delta * share
        m2 = self.m2 + other.m2 + delta * delta * self.count * share
        # An empty side must leave the other side's bits untouched.
        mean = np.where(self.count == 0, other.mean, np.where(other.count == 0, self.mean, mean))
        m2 = np.where(self.count == 0, other.m2, np.where(other.count == 0, self.m2, m2))
        return Moments(
            count=count, mean=mean, m2=m2, low=np.fmin(self.low, other.low), high=np.fmax(self.high, other.high)
        )

    def fold(self, group: NDArray[np.integer], num_groups: int) -> "Moments":
        """Merge rows that share a group, left to right in their present order.

        Parameters
        ----------
        group
            int [N], group of each row, ascending.
        num_groups
            Length of the result; groups without a row stay empty.
        """
        total = Moments.empty(num_groups)
        if len(self) == 0:
            return total
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        size, number = np.diff(np.append(first, group.size)), 0
        columns = (total.count, total.mean, total.m2, total.low, total.high)
        # A round merges the next row of every group that has one.
        while first.size and _ROUND * (size.max() - number) < _GROUP * size.size + _ROW * (size - number).sum():
            rows = self.take(first + number)
            merged = total.take(group[first]).merge(rows) if number else rows
            parts = (merged.count, merged.mean, merged.m2, merged.low, merged.high)
            for column, part in zip(columns, parts, strict=True):
                column[group[first]] = part
            number += 1
            if number >= size.min():
                first, size = first[size > number], size[size > number]
        for begin, end in zip(first + number, first + size, strict=True):
            total._append(int(group[begin]), self.take(np.arange(begin, end)))
        return total

    def _append(self, place: int, rows: "Moments") -> None:
        """Merge rows with one group one after the other, to the bits that :meth:`merge` would come to."""
        seen = np.append(self.count[place], rows.count) > 0  # rows without values change nothing
        pairs = ((self.count, rows.count), (self.mean, rows.mean), (self.m2, rows.m2))
        counts, means, squares = (np.append(own[place], more)[seen] for own, more in pairs)
        if counts.size == 0:
            return
        merged = np.cumsum(counts)
        share = counts / merged
        mean, before = float(means[0]), []
        for value, part in zip(means[1:].tolist(), share[1:].tolist(), strict=True):
            before.append(mean)
            mean += (value - mean) * part
        delta = means[1:] - np.array(before)
        terms = np.empty(2 * counts.size - 1)
        terms[0], terms[1::2], terms[2::2] = squares[0], squares[1:], delta * delta * merged[:-1] * share[1:]
        self.count[place], self.mean[place], self.m2[place] = merged[-1], mean, np.cumsum(terms)[-1]
        self.low[place] = np.fmin.reduce(rows.low, initial=self.low[place])
        self.high[place] = np.fmax.reduce(rows.high, initial=self.high[place])


_ROUND, _GROUP, _ROW = 80, 30, 0.15
"""Microseconds of a round of :meth:`Moments.fold`, and of a group and a row that are merged alone."""


def concatenate(parts: Sequence[Moments]) -> Moments:
    """Join groups of several parts in order."""
    if not parts:
        return Moments.empty(0)
    return Moments(
        count=np.concatenate([p.count for p in parts]),
        mean=np.concatenate([p.mean for p in parts]),
        m2=np.concatenate([p.m2 for p in parts]),
        low=np.concatenate([p.low for p in parts]),
        high=np.concatenate([p.high for p in parts]),
    )
