"""Cut the windows of an epoch into batches, and each step of all ranks into one batch per rank.

Every rank gets the same number of batches by construction. Pure integers: no process group is needed to test it.
"""

from dataclasses import dataclass
from typing import Protocol


class BatchCuts(Protocol):
    """Batches over the rest of an epoch, numbered from 0; positions count the windows of the rank's plan."""

    @property
    def first(self) -> int:
        """Position that is served first."""

    @property
    def batch_size(self) -> int:
        """Windows per rank and batch that were asked for."""

    def __len__(self) -> int:
        """Return the number of batches, the same for every rank."""

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the positions that are served once a batch is, from the first one of that batch on."""

    def slice_of(self, number: int, rank: int) -> tuple[int, int]:
        """Return the positions of one rank's batch."""

    def consumed_after(self, number: int) -> tuple[int, ...]:
        """Return the windows of each share of the epoch that are done when a batch is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCuts:
    """Global batches over positions [first, total) of an epoch that all ranks share.

    A rest with fewer windows than ranks joins the batch before it. Where there is none before it, which needs a resume
    with more ranks or larger batches than before, the first ranks get one window each and the others an empty batch.

    Parameters
    ----------
    first, total
        Positions that are still to be served.
    batch_size
        Windows per rank and batch.
    world_size
        Number of ranks.
    drop_last
        Whether a last global batch that is not full is left out.
    """

    first: int
    total: int
    batch_size: int
    world_size: int = 1
    drop_last: bool = False

    @property
    def global_size(self) -> int:
        """Windows of a full global batch."""
        return self.batch_size * self.world_size

    def __len__(self) -> int:
        """Return the number of batches, the same for every rank."""
        full, rest = divmod(self.total - self.first, self.global_size)
        if rest == 0 or self.drop_last or (full > 0 and rest < self.world_size):
            return full
        return full + 1

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the positions of a global batch; a rest smaller than the ranks joins the last one."""
        start = self.first + number * self.global_size
        last = number == len(self) - 1 and not self.drop_last
        return start, self.total if last else start + self.global_size

    def slice_of(self, number: int, rank: int) -> tuple[int, int]:
        """Return the positions of one rank's share of a global batch; shares differ by one window at most."""
        start, stop = self.bounds(number)
        base, extra = divmod(stop - start, self.world_size)
        begin = start + rank * base + min(rank, extra)
        return begin, begin + base + (rank < extra)

    def consumed_after(self, number: int) -> tuple[int, ...]:
        """Return the windows of the epoch that are done when a batch is: one share, of all ranks."""
        return (self.bounds(number)[1],)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCuts:
    """Batches of a rank over its own windows, where every rank serves windows of its own.

    Ranks have nearly equal numbers of windows. The number of batches is that of the rank with most windows, unless
    another would then get an empty one; every rank spreads its windows evenly over them, so nothing is left over.
    Cutting the rest of an epoch again gives the same batches.

    Parameters
    ----------
    rank
        Whose positions are meant.
    firsts, totals
        By rank: positions that are still to be served.
    batch_size
        Windows per rank and batch.
    drop_last
        Whether every batch is full and what remains is left out.
    """

    rank: int
    firsts: tuple[int, ...]
    totals: tuple[int, ...]
    batch_size: int
    drop_last: bool = False

    @property
    def first(self) -> int:
        """Position of this rank that is served first."""
        return self.firsts[self.rank]

    def __len__(self) -> int:
        """Return the number of batches, the same for every rank."""
        left = [total - first for first, total in zip(self.firsts, self.totals, strict=True)]
        if self.drop_last:
            return min(left) // self.batch_size
        return min(-(-max(left) // self.batch_size), max(min(left), 1))

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the positions of a batch of this rank."""
        return self.slice_of(number, self.rank)

    def slice_of(self, number: int, rank: int) -> tuple[int, int]:
        """Return the positions of a batch of any rank, in the plan of that rank."""
        return self._end(number, rank), self._end(number + 1, rank)

    def consumed_after(self, number: int) -> tuple[int, ...]:
        """Return the windows that are done when a batch is, by rank."""
        return tuple(self._end(number + 1, rank) for rank in range(len(self.totals)))

    def _end(self, batches: int, rank: int) -> int:
        """Return the position after so many batches."""
        first = self.firsts[rank]
        if self.drop_last:
            return first + batches * self.batch_size
        base, extra = divmod(self.totals[rank] - first, len(self))
        return first + batches * base + min(batches, extra)


def cut_epoch(
    first: tuple[int, ...] | None,
    totals: tuple[int, ...],
    *,
    rank: int,
    world_size: int,
    batch_size: int,
    drop_last: bool,
) -> BatchCuts:
    """Cut the rest of an epoch.

    Parameters
    ----------
    first, totals
        By share: where to begin, None for the start, and the windows of the whole epoch. One share is of all ranks.
    rank, world_size, batch_size, drop_last
        As for :class:`SharedCuts` and :class:`LocalCuts`.
    """
    begin = first or (0,) * len(totals)
    if len(totals) > 1:
        return LocalCuts(rank=rank, firsts=begin, totals=totals, batch_size=batch_size, drop_last=drop_last)
    return SharedCuts(
        first=begin[0], total=totals[0], batch_size=batch_size, world_size=world_size, drop_last=drop_last
    )
