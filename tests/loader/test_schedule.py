"""Epoch plans: every tile once, rounds within their size, even shares, the same plan everywhere and for ever."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headrace.loader.layout import lay_out
from headrace.loader.schedule import EpochPlan, plan_epoch
from headrace.loader.tiles import Tiles, cut_tiles, tile_starts
from headrace.loader.windows import Windows
from random_windows import window_runs, windows_from
from tree import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "golden" / "plan_digests.json"
Planned = tuple[EpochPlan, Tiles, NDArray[np.int64]]


def planned(windows: Windows, length: int, share: float, *, seed: int = 0, epoch: int = 0, shuffle: bool = True):
    """Plan an epoch whose rounds hold ``share`` of the split's rows, all of it from 1 on."""
    layout = lay_out(windows, length)
    round_steps = max(int(layout.num_rows * min(share, 1.0)), length)
    tiles = cut_tiles(windows, layout, length, tile_starts(layout, length, round_steps))
    column = (layout.dataset.astype(np.int64) << 32) + layout.basin // 4
    plan = plan_epoch(
        tiles,
        column,
        seed=seed,
        epoch=epoch,
        round_steps=round_steps,
        shuffle=shuffle,
        resident=round_steps >= layout.num_rows,
    )
    return plan, tiles, layout


@st.composite
def plans(draw: st.DrawFn):
    return planned(
        draw(window_runs()),
        draw(st.integers(1, 10)),
        draw(st.sampled_from([0.05, 0.2, 0.6, 1.0])),
        seed=draw(st.integers(0, 2**40)),
        epoch=draw(st.integers(0, 3)),
        shuffle=draw(st.booleans()),
    )


@given(plans())
def test_every_tile_is_used_once(case):
    plan, tiles, _ = case
    used = np.concatenate([plan.tiles_of(number) for number in range(plan.num_rounds)])
    assert sorted(used.tolist()) == list(range(tiles.slot.size))
    assert plan.num_windows == tiles.num_windows.sum()


@given(plans())
def test_rounds_stay_within_their_size_and_none_is_empty(case):
    plan, tiles, layout = case
    for number in range(plan.num_rounds):
        own = plan.tiles_of(number)
        assert own.size > 0
        served = plan.window_cuts[number + 1] - plan.window_cuts[number]
        assert served == tiles.num_windows[own].sum() > 0
        if plan.round_steps < layout.num_rows:
            assert tiles.num_rows[own].sum() <= plan.round_steps


@given(plans())
def test_without_shuffling_tiles_keep_their_order(case):
    plan, tiles, _ = case
    if not plan.shuffle:
        assert plan.tile_order.tolist() == list(range(tiles.slot.size))


@given(window_runs(), st.integers(1, 8), st.integers(0, 9))
def test_a_resident_split_is_one_round_from_the_second_epoch_on(windows, length, seed):
    first, _, _ = planned(windows, length, 1.0, seed=seed, epoch=0)
    later, _, _ = planned(windows, length, 1.0, seed=seed, epoch=1)
    assert first.num_rounds <= 8
    assert later.num_rounds == 1


def test_a_resident_first_epoch_has_eight_rounds_of_about_equal_size():
    plan, _, _ = planned(EVEN, 10, 1.0)
    sizes = np.diff(plan.window_cuts)
    assert sizes.size == 8
    assert sizes.max() / sizes.min() < 1.3


EVEN = windows_from([(0, b, 0, 300) for b in range(12)] + [(1, b, 0, 100) for b in range(9)], 1)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_every_round_has_an_even_share_of_each_data_set(share, seed):
    """Joint training keeps its balance from round to round."""
    plan, tiles, layout = planned(EVEN, 10, share, seed=seed)
    dataset = layout.dataset[tiles.slot]
    for number in range(plan.num_rounds):
        own = plan.tiles_of(number)
        served = tiles.num_windows[own]
        share_of_first = served[dataset[own] == 0].sum() / served.sum()
        # A round is made of whole tiles: one and a half of them more or less than the fair share.
        assert abs(share_of_first - 3600 / 4500) <= 1.5 * served.max() / served.sum()


@pytest.mark.parametrize("seed", range(3))
def test_every_round_has_an_even_share_of_each_basin(seed):
    plan, tiles, layout = planned(EVEN, 10, 0.5, seed=seed)
    counts = np.zeros((plan.num_rounds, layout.num_slots))
    for number in range(plan.num_rounds):
        own = plan.tiles_of(number)
        np.add.at(counts[number], tiles.slot[own], tiles.num_windows[own])
    share = counts / counts.sum(axis=0)
    # A basin has a whole number of tiles, so one tile more or less than its fair share.
    tile = tiles.num_windows.max() / counts.sum(axis=0)
    assert (np.abs(share - 1 / plan.num_rounds) <= tile + 0.05).all()


def test_plans_depend_on_seed_and_epoch_alone():
    digests = {(s, e): planned(EVEN, 10, 0.3, seed=s, epoch=e)[0].digest() for s in range(4) for e in range(4)}
    assert len(set(digests.values())) == 16
    assert digests == {k: planned(EVEN, 10, 0.3, seed=k[0], epoch=k[1])[0].digest() for k in digests}


def test_each_round_has_its_own_order_of_windows():
    plans = [planned(EVEN, 10, 0.3, seed=s, epoch=e)[0] for s in range(3) for e in range(3)]
    orders = {p.order_of(r)(np.arange(100)).tobytes() for p in plans for r in range(3)}
    assert len(orders) == 27


def golden_digests() -> dict[str, str]:
    """Return the digests of some plans by what they were made from."""
    return {
        f"seed {seed}, epoch {epoch}, share {share}": planned(EVEN, 10, share, seed=seed, epoch=epoch)[0].digest()
        for seed in (0, 1, 2**40)
        for epoch in (0, 1)
        for share in (0.1, 0.5, 1.0)
    }


def test_plans_are_those_of_the_first_release():
    """A change here breaks resuming in the middle of an epoch from every checkpoint there is."""
    assert golden_digests() == json.loads(GOLDEN.read_text(encoding="utf-8"))


@given(plans(), st.data())
def test_rounds_of_a_stretch_are_those_that_serve_its_positions(case, data):
    plan, _, _ = case
    start = data.draw(st.integers(0, plan.num_windows - 1))
    stop = data.draw(st.integers(start + 1, plan.num_windows))
    cuts = plan.window_cuts
    touched = [r for r in range(plan.num_rounds) if cuts[r] < stop and cuts[r + 1] > start]
    assert list(plan.rounds_of(start, stop)) == touched
