"""How far an epoch has come. A share is what one plan serves: the whole split, or with ``rank_local`` a rank's part."""

from collections.abc import Sequence
from typing import Any

from headrace.loader.state import LoaderState


def windows_of_epoch(loads: Sequence[int], max_batches: int | None, batch_size: int) -> tuple[int, ...]:
    """Return the windows that an epoch serves of each share.

    Parameters
    ----------
    loads
        Windows of each share.
    max_batches
        Batches that an epoch may have; None is no limit.
    batch_size
        Windows of one batch of all ranks that serve a share.
    """
    return tuple(load if max_batches is None else min(load, max_batches * batch_size) for load in loads)


class Progress:
    """The present epoch, its size and what is done of it, by share.

    Parameters
    ----------
    totals
        Windows of every epoch that begins here.

    Attributes
    ----------
    epoch
        Number of the epoch.
    totals
        Windows of this epoch; another process may have begun it with other numbers.
    consumed
        Windows handed out.
    all_served
        Whether the last batch was handed out; who knows the number of batches need not ask for one more.
    """

    def __init__(self, totals: tuple[int, ...]) -> None:
        self._own = totals
        self.start(0)

    def start(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self.epoch, self.totals = epoch, self._own
        self.consumed = self._begin_at = (0,) * len(self._own)
        self.all_served = False

    def take(self, state: LoaderState, *, go_on: bool) -> None:
        """Go to where a state lies; where its epoch cannot go on here, to the same end of the own one."""
        self.start(state.epoch)
        if go_on:
            consumed, self.totals = state.shares
            self.consumed = self._begin_at = consumed
        elif state.windows_consumed:
            self.consumed = self._begin_at = self.totals

    def windows(self) -> dict[str, Any]:
        """Return the fields of a state that say how far the epoch has come."""
        pairs = [list(pair) for pair in zip(self.consumed, self.totals, strict=True)]
        return {
            "windows_consumed": sum(self.consumed),
            "epoch_windows": sum(self.totals),
            "by_rank": pairs if len(pairs) > 1 else None,
        }

    def begin(self) -> tuple[int, ...]:
        """Return where an iteration begins: where a state left off, but only once, else at the start.

        After an epoch whose last batch was handed out it is the start of the next one.
        """
        if self.all_served:
            self.start(self.epoch + 1)
        self.consumed, self._begin_at = self._begin_at, (0,) * len(self._own)
        return self.consumed
