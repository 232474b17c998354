"""A stretch of work that all ranks do together: whoever fails tells the others, so that nobody waits in vain."""

from types import TracebackType
from typing import Any, Protocol, Self

import torch

from headrace.schemas import errors


class _Place(Protocol):
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def connected(self) -> bool: ...


class Joint:
    """Exchange values with the other ranks; as a context manager also the news that this rank failed.

    Every rank exchanges equally often. One that raises inside the ``with`` block takes part in the exchange that the
    others come to next, and they raise an error of the same class there.

    Parameters
    ----------
    world
        Rank and number of ranks, and whether they can talk; a single process, or ranks that cannot, exchange nothing.
    """

    def __init__(self, world: _Place) -> None:
        self._world, self._over = world, False

    def exchange(self, value: Any) -> list[Any]:
        """Return the values of all ranks in their order; only the own one where ranks cannot talk.

        Raises
        ------
        HeadraceError, RuntimeError
            Another rank failed before it came here.
        """
        if not self._world.connected:
            return [value]
        answers = self._all(("", "", value))
        for rank, (kind, message, _) in enumerate(answers):
            if kind:
                self._over = True
                found = getattr(errors, kind, RuntimeError)
                known = isinstance(found, type) and issubclass(found, errors.HeadraceError)
                msg = f"rank {rank} of {self._world.size} failed: {kind}: {message}"
                raise (found if known else RuntimeError)(msg)
        return [answer[2] for answer in answers]

    def of_first(self, value: int) -> int:
        """Return the value that rank 0 has; the own one where ranks cannot talk."""
        return int(self.exchange(value)[0])

    def everyone_knows(self) -> None:
        """Say that all ranks are about to raise: what they exchanged shows it to each of them."""
        self._over = True

    def _all(self, answer: tuple[str, str, Any]) -> list[tuple[str, str, Any]]:
        every: list[Any] = [None] * self._world.size
        torch.distributed.all_gather_object(every, answer)
        return every

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell the others of an error that they do not know yet."""
        if self._world.connected and not self._over and isinstance(error, Exception):
            self._over = True
            self._all((type(error).__name__, str(error), None))
