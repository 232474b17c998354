"""Rounds of an epoch that does not serve every window once: which windows of which tiles, and in which order.

In a round the windows of a data set follow each other pass by pass, so that none is used again before all are used, and
the data sets are interleaved so evenly that every batch holds its share of each.

Legend: U uses, D data sets, B positions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.permutation import Permutation, derive_key
from headrace.loader.sampling import Stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Stretches of tiles in the order of rounds, data sets and passes.

    Parameters
    ----------
    round
        int64 [U], rising.
    stretches
        The windows of each use.
    dataset, turn
        int64 [U]: position of its data set, and the pass over the data set that it belongs to.
    """

    round: NDArray[np.int64]
    stretches: Stretches
    dataset: NDArray[np.int64]
    turn: NDArray[np.int64]

    def of_round(self, number: int) -> slice:
        """Return the uses of a round."""
        first, last = np.searchsorted(self.round, [number, number + 1]).tolist()
        return slice(first, last)

    def content(self) -> tuple[NDArray[np.int64], ...]:
        """Return everything that decides what is served."""
        s = self.stretches
        return self.round, s.tile, s.first, s.step, s.count, self.dataset, self.turn

    def order_of(self, number: int, key: int) -> "MixedOrder":
        """Return the order of a round's windows."""
        own = self.of_round(number)
        done = np.append(0, np.cumsum(self.stretches.count[own]))
        dataset, turn = self.dataset[own], self.turn[own]
        new = np.append(True, (dataset[1:] != dataset[:-1]) | (turn[1:] != turn[:-1]))
        first = np.flatnonzero(new)
        served = np.bincount(dataset, weights=self.stretches.count[own]).astype(np.int64)
        return MixedOrder(served, np.append(done[first], done[-1]), key)


class MixedOrder:
    """A permutation of a round's windows that interleaves data sets and keeps passes one after the other.

    Parameters
    ----------
    served
        int64 [D], windows of each data set, which lie one after the other.
    cuts
        int64 [passes + 1], first window of each pass of each data set.
    key
        64-bit integer.
    """

    def __init__(self, served: NDArray[np.int64], cuts: NDArray[np.int64], key: int) -> None:
        self._served, self._cuts, self._key = served, cuts, key

    def __call__(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the windows at positions of the round, int64 [B]."""
        window = self._interleaved(positions)
        turn = np.searchsorted(self._cuts, window, side="right") - 1
        for number in np.unique(turn).tolist():
            first, last = self._cuts[number : number + 2].tolist()
            own = np.flatnonzero(turn == number)
            window[own] = first + Permutation(derive_key(self._key, number), last - first)(window[own] - first)
        return window

    def _interleaved(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give each position the next window of a data set; of every stretch each data set has its share, to one."""
        window, left = np.empty_like(positions), np.arange(positions.size)
        place, rest, first = positions, int(self._served.sum()), 0
        for served in self._served[:-1].tolist():
            before = place * served // max(rest, 1)
            own = (place + 1) * served // max(rest, 1) > before
            window[left[own]] = first + before[own]
            place, left = (place - before)[~own], left[~own]
            first, rest = first + served, rest - served
        window[left] = first + place
        return window
