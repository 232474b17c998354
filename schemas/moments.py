"""Count, mean and sum of squared deviations, merged without ever forming E[x²] - mean².

The merge is that of Chan, Golub and LeVeque (1983), "Algorithms for computing the sample variance"; the standard
deviation is the population one. Folds run left to right in a given order, so that the bytes of a result do not depend
on who computed which part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
        rank = np.arange(group.size) - np.repeat(first, np.diff(np.append(first, group.size)))
        by_rank = np.argsort(rank, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(rank)))
        if _ROUND_COST * (bounds.size - 1) > len(self):
            return self._fold_one_by_one(group, num_groups)
        columns = (total.count, total.mean, total.m2, total.low, total.high)
        for start, stop in pairwise(bounds):
            rows = by_rank[start:stop]
            merged = total.take(group[rows]).merge(self.take(rows))
            parts = (merged.count, merged.mean, merged.m2, merged.low, merged.high)
            for column, part in zip(columns, parts, strict=True):
                column[group[rows]] = part
        return total

    def _fold_one_by_one(self, group: NDArray[np.integer], num_groups: int) -> "Moments":
        """Fold as above, to the same bits, where a few long groups make rounds of a few rows each."""
        total = Moments.empty(num_groups)
        some = np.flatnonzero(self.count)  # rows without values change nothing
        parts, group = self.take(some), group[some]
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if group.size else np.zeros(0, np.int64)
        columns = (total.count, total.mean, total.m2)
        for start, stop in pairwise([*first.tolist(), group.size]):
            rows = (column[start:stop].tolist() for column in (parts.count, parts.mean, parts.m2))
            for column, merged in zip(columns, _merge_rows(*rows), strict=True):
                column[group[start]] = merged
        if group.size:
            total.low[group[first]] = np.minimum.reduceat(parts.low, first)
            total.high[group[first]] = np.maximum.reduceat(parts.high, first)
        return total


_ROUND_COST = 100
"""Rows merged one by one in the time that one round of :meth:`Moments.fold` takes, about 40 µs."""


def _merge_rows(counts: list[int], means: list[float], squares: list[float]) -> tuple[int, float, float]:
    """Merge non-empty rows one after the other, by the operations of :meth:`Moments.merge` in their order."""
    count, mean, m2 = counts[0], means[0], squares[0]
    for i in range(1, len(counts)):
        merged = count + counts[i]
        share = counts[i] / merged
        delta = means[i] - mean
        m2 = m2 + squares[i] + delta * delta * count * share
        mean = mean + delta * share
        count = merged
    return count, mean, m2


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
