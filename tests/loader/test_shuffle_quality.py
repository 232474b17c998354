"""How well a bounded budget mixes, from plans alone: against a perfect shuffle, and from start to end of an epoch."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.loader.layout import Layout, lay_out
from headrace.loader.permutation import Permutation
from headrace.loader.schedule import EpochPlan, plan_epoch
from headrace.loader.tiles import Tiles, cut_tiles, tile_starts
from random_windows import windows_from

BASINS, STEPS, LENGTH, BATCH = 64, 2000, 60, 64
TIME_CHUNK = 100
WINDOWS = windows_from([(0, b, 0, STEPS - LENGTH + 1) for b in range(BASINS)], 1)


def order_of(plan: EpochPlan, tiles: Tiles, layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return basin and start of every window of an epoch in the order they are served."""
    basins, starts = [], []
    for number in range(plan.num_rounds):
        pieces = np.concatenate(
            [np.arange(tiles.piece_cuts[t], tiles.piece_cuts[t + 1]) for t in plan.tiles_of(number)]
        )
        count = tiles.piece_windows[pieces]
        tile = np.searchsorted(tiles.piece_cuts, pieces, side="right") - 1
        basin = np.repeat(layout.basin[tiles.slot[tile]], count)
        ahead = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        start = np.repeat(tiles.piece_start[pieces], count) + ahead
        image = Permutation(plan.key_of(number), basin.size)(np.arange(basin.size))
        basins.append(basin[image])
        starts.append(start[image])
    return np.concatenate(basins), np.concatenate(starts)


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of distinct values in every full batch."""
    batches = np.sort(values[: values.size // BATCH * BATCH].reshape(-1, BATCH), axis=1)
    return 1 + (np.diff(batches, axis=1) != 0).sum(axis=1)


def served(budget: float, seed: int, epoch: int, columns: int = 8) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    layout = lay_out(WINDOWS, LENGTH)
    round_steps = int(layout.num_rows * min(budget, 1.0))
    tiles = cut_tiles(WINDOWS, layout, LENGTH, tile_starts(layout, LENGTH, round_steps))
    column = layout.basin.astype(np.int64) // (BASINS // columns)
    plan = plan_epoch(
        tiles, column, seed=seed, epoch=epoch, round_steps=round_steps, shuffle=True, resident=budget >= 1
    )
    return order_of(plan, tiles, layout)


def perfect(kinds: NDArray[np.int64]) -> float:
    """Return the mean number of distinct values per batch of a perfect shuffle."""
    share = np.bincount(kinds) / kinds.size
    return float((1 - (1 - share) ** BATCH).sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("budget", [0.1, 0.125, 0.25, 0.5, 0.9])
def test_batches_of_a_bounded_budget_mix_basins_and_times_as_a_perfect_shuffle_does(budget, seed):
    basin, start = served(budget, seed, epoch=0)
    assert distinct(basin).mean() >= 0.9 * perfect(basin)
    assert distinct(start // TIME_CHUNK).mean() >= 0.9 * perfect(start // TIME_CHUNK)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("budget", [0.1, 0.125, 0.25, 0.5, 0.9])
def test_every_tenth_of_an_epoch_mixes_as_the_first(budget, seed):
    basin, start = served(budget, seed, epoch=1)
    for kinds in (basin, start // TIME_CHUNK):
        tenths = [part.mean() for part in np.array_split(distinct(kinds), 10)]
        assert min(tenths) >= 0.95 * tenths[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_resident_split_is_shuffled_perfectly_after_its_first_epoch(seed):
    basin, start = served(1.0, seed, epoch=1)
    assert distinct(basin).mean() == pytest.approx(perfect(basin), rel=0.01)
    assert distinct(start // TIME_CHUNK).mean() == pytest.approx(perfect(start // TIME_CHUNK), rel=0.01)


@pytest.mark.parametrize("budget", [0.1, 0.5, 1.0])
def test_an_epoch_serves_every_window_once_in_an_order_of_its_own(budget):
    first, second = (served(budget, 0, epoch) for epoch in (1, 2))
    for basin, start in (first, second):
        assert np.unique(basin * STEPS + start).size == basin.size == WINDOWS.total
    assert (first[0] != second[0]).mean() > 0.9
