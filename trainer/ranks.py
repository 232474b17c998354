"""What the processes that train one model together say to each other; a single process says nothing.

Every method is a collective call: all ranks make it, in the same order.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import distributed

from headrace.schemas.errors import HeadraceError, describe

T = TypeVar("T")


class RankLostError(HeadraceError):
    """Another process of the group has ended, or does not answer."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where one process stands among those that train together.

    Parameters
    ----------
    rank, size
        Its place, counted from 0, and the number of processes.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> "Ranks":
        """Return the place in torch.distributed where it is initialised, else that of a single process."""
        if distributed.is_available() and distributed.is_initialized():
            return cls(distributed.get_rank(), distributed.get_world_size())
        return cls()

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which alone writes files and prints."""
        return self.rank == 0

    def add_up(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum over all ranks of a tensor that has the same shape on each; ``values`` stays as it is."""
        if self.size == 1:
            return values
        total = values.clone()
        with _others_answer():
            distributed.all_reduce(total)
        return total

    def gather(self, value: T) -> list[T]:
        """Return a picklable value of every rank, in their order."""
        if self.size == 1:
            return [value]
        every: list[Any] = [None] * self.size
        with _others_answer():
            distributed.all_gather_object(every, value)
        return every

    def rows(self, values: torch.Tensor) -> torch.Tensor:
        """Return float64 [ΣN, …], the rows of every rank [N, …] one after the other, on the CPU.

        Ranks may have different numbers of rows. A batch that ranks share out is whole again, in its order.
        """
        mine = values.detach().double().cpu().contiguous()
        if self.size == 1:
            return mine
        counts = torch.zeros(self.size, dtype=torch.int64)
        counts[self.rank] = len(mine)
        with _others_answer():
            distributed.all_reduce(counts)
            most = int(counts.max())
            padded = mine.new_zeros((most, *mine.shape[1:]))
            padded[: len(mine)] = mine
            every = [torch.empty_like(padded) for _ in range(self.size)]
            distributed.all_gather(every, padded)
        return torch.cat([part[:n] for part, n in zip(every, counts.tolist(), strict=True)])

    def any(self, *, value: bool) -> bool:
        """Return whether the value is true on some rank."""
        return any(self.gather(value))

    def from_first(self, make: Callable[[], T]) -> T:
        """Let rank 0 make a picklable value, and return it on every rank.

        Raises
        ------
        Exception
            What ``make`` raised, on every rank.
        """
        if self.size == 1:
            return make()
        error: Exception | None = None
        answer: list[Any] = [None]
        if self.first:
            try:
                answer = [(make(), None)]
            except Exception as caught:  # noqa: BLE001 - raised below, when the others know
                error = caught
                answer = [(None, caught if _travels(caught) else RuntimeError(repr(caught)))]
        with _others_answer():
            distributed.broadcast_object_list(answer, src=0)
        value, failed = answer[0]
        if error is not None or failed is not None:
            raise error or failed
        made: T = value
        return made


def _travels(error: Exception) -> bool:
    """Return whether an exception survives pickling."""
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # noqa: BLE001 - exceptions may hold anything
        return False


@contextmanager
def _others_answer() -> Iterator[None]:
    """Turn the transport's complaint into one that says what happened."""
    try:
        yield
    except RuntimeError as error:
        raise RankLostError(
            describe(
                "another rank has ended or does not answer",
                where="training with several processes",
                expected="every rank to take part in every step",
                got=str(error).splitlines()[0][:200],
                fix="look for the first error among the ranks' messages; then go on with --resume",
            )
        ) from error
