"""Cut an epoch's positions into global batches and each global batch into one slice per rank.

Every rank gets the same number of batches by construction. Pure integers: no process group is needed to test it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.schemas.errors import ConfigError, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCuts:
    """Batches over positions [first, total) of an epoch.

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

    def __post_init__(self) -> None:
        """Refuse a rest that cannot give every rank a window."""
        left = self.total - self.first
        if 0 < left < self.world_size and not self.drop_last:
            raise ConfigError(
                describe(
                    "fewer windows than ranks",
                    where="WindowLoader",
                    expected=f"at least {self.world_size} windows",
                    got=f"{left}",
                    fix="use fewer ranks, or drop_last=True",
                )
            )

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

    def slices(self, rank: int) -> Iterator[tuple[int, int]]:
        """Yield the positions of every batch of a rank."""
        for number in range(len(self)):
            yield self.slice_of(number, rank)
