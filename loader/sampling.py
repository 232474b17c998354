"""How many windows of each data set an epoch serves, and which windows of a basin it may choose from.

A basin's cap comes first (``max_windows_per_basin``): each epoch draws its windows anew, spread over the record. Quotas
are shares of the epoch's length among data sets, over what the cap leaves.

Legend: N tiles, D data sets, E stretches of windows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.permutation import derive_key, hash_floats
from headrace.loader.tiles import Tiles
from headrace.schemas.config import SamplingConfig

_PHASES, _OFFSETS = 10, 11
"""What a key is for; apart from those of the schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """Windows first, first + step, … of a tile, counted in the order of its starts; struct of arrays, int64 [E].

    Parameters
    ----------
    tile
        Number of the tile.
    first, step, count
        Which of its windows.
    """

    tile: NDArray[np.int64]
    first: NDArray[np.int64]
    step: NDArray[np.int64]
    count: NDArray[np.int64]

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> "Stretches":
        """Return some of the stretches, in the order given."""
        return Stretches(tile=self.tile[which], first=self.first[which], step=self.step[which], count=self.count[which])


def whole_tiles(tiles: Tiles) -> Stretches:
    """Return every window of every tile."""
    size = tiles.slot.size
    return Stretches(
        tile=np.arange(size), first=np.zeros(size, np.int64), step=np.ones(size, np.int64), count=tiles.num_windows
    )


def chosen_windows(tiles: Tiles, cap: int | None, seed: int, epoch: int) -> Stretches:
    """Return the windows that an epoch may serve: at most ``cap`` of every basin, drawn anew for each epoch.

    A tile's share of the cap is that of its windows; the windows it gives are evenly spaced from a random one on,
    around the end, so that each is as likely as any other.
    """
    if cap is None:
        return whole_tiles(tiles)
    size, num_slots = tiles.num_windows, int(tiles.slot.max(initial=-1)) + 1
    of_basin = np.bincount(tiles.slot, weights=size, minlength=num_slots).astype(np.int64)
    stop = np.cumsum(size)
    first_tile = np.searchsorted(tiles.slot, np.arange(num_slots))
    begin = (stop - size)[first_tile][tiles.slot] if size.size else stop
    most = np.minimum(of_basin, cap)[tiles.slot]
    phase = (hash_floats(derive_key(seed, epoch, _PHASES), num_slots) * of_basin).astype(np.int64)[tiles.slot]
    done = [(most * (edge - begin) + phase) // of_basin[tiles.slot] for edge in (stop - size, stop)]
    count = done[1] - done[0]
    offset = (hash_floats(derive_key(seed, epoch, _OFFSETS), size.size) * size).astype(np.int64)
    step = size // np.maximum(count, 1)
    ahead = np.minimum(-(-(size - offset) // step), count)
    parts = Stretches(
        tile=np.repeat(np.arange(size.size), 2),
        first=np.column_stack([offset, offset + ahead * step - size]).ravel(),
        step=np.repeat(step, 2),
        count=np.column_stack([ahead, count - ahead]).ravel(),
    )
    return parts.take(parts.count > 0)


def windows_to_choose_from(
    tiles: Tiles, dataset: NDArray[np.int64], num_datasets: int, cap: int | None
) -> NDArray[np.int64]:
    """Return how many windows of each data set an epoch may serve, int64 [D]; ``dataset`` is int64 [slots]."""
    of_basin = np.bincount(tiles.slot, weights=tiles.num_windows, minlength=dataset.size)
    most = of_basin if cap is None else np.minimum(of_basin, cap)
    return np.bincount(dataset, weights=most, minlength=num_datasets).astype(np.int64)


def quotas(
    sampling: SamplingConfig, weights: NDArray[np.float64], available: NDArray[np.int64], length: int
) -> NDArray[np.int64]:
    """Share an epoch's windows among data sets by largest remainder.

    Parameters
    ----------
    sampling
        Its ``mode`` says by what: windows, equal shares, or weights.
    weights
        float64 [D], above 0.
    available
        int64 [D], windows to choose from; a data set without any gets none.
    length
        Windows of the epoch.

    Returns
    -------
    NDArray[np.int64]
        [D], together ``length``.
    """
    by: NDArray[np.float64] = {
        "weighted_by_sample": available.astype(np.float64),
        "balanced_by_dataset": np.ones(available.size),
        "weighted_by_dataset": weights,
    }[sampling.mode]
    share = np.where(available > 0, by, 0.0)
    wanted = length * (share / share.sum())
    quota: NDArray[np.int64] = np.floor(wanted).astype(np.int64)
    order = np.argsort(quota - wanted, kind="stable")
    quota[order[: length - int(quota.sum())]] += 1
    return quota
