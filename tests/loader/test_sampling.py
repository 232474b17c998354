"""Quotas and caps, from plans alone: exact shares, mixed throughout, no repeats before all is used (H10, H13)."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planned import Planned, planned
from random_windows import listed, window_runs, windows_from
from tree import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "golden" / "sampled_plan_digests.json"

LARGE, SMALL, SHORT = range(3)
UNEVEN = windows_from(
    [(LARGE, b, 0, 900) for b in range(20)] + [(SMALL, b, 10 * b, 150) for b in range(6)]
    + [(SHORT, b, 0, 3) for b in range(4)], 1,
)  # fmt: skip
"""18,000, 900 and 12 windows: a long record, a short one and one of three windows a basin."""
SIZES = np.array([18_000, 900, 12])
MODES = ("weighted_by_sample", "balanced_by_dataset", "weighted_by_dataset")
SHARES = (0.1, 0.4, 1.0)


def split(share: float) -> Planned:
    return planned(UNEVEN, 10, share)


def counts(case: Planned, plan) -> np.ndarray:
    return np.bincount(case.layout.dataset[case.served(plan)[0]], minlength=3)


@pytest.mark.parametrize(("share", "epoch"), [(0.1, 0), (0.4, 1), (1.0, 5), (1.0, 0)])
def test_data_sets_have_exactly_their_shares(share, epoch):
    case = split(share)
    for limit in (None, 3000, 301):
        length = limit or int(SIZES.sum())
        for mode, weights, wanted in (
            ("weighted_by_sample", (), SIZES / SIZES.sum()),
            ("balanced_by_dataset", (), np.ones(3) / 3),
            ("weighted_by_dataset", (1, 6, 3), np.array([0.1, 0.6, 0.3])),
        ):
            plan = case.sampled(mode=mode, weights=weights, limit=limit, epoch=epoch)
            assert plan.num_windows == length
            assert np.abs(counts(case, plan) - wanted * length).max() < 1


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("mode", MODES)
def test_every_tenth_of_an_epoch_and_every_batch_holds_the_shares(share, mode):
    case = split(share)
    for epoch in (0, 1):
        plan = case.sampled(mode=mode, weights=(1, 6, 3), epoch=epoch)
        dataset = case.layout.dataset[case.served(plan)[0]]
        wanted = np.bincount(dataset) / dataset.size
        for tenth in np.array_split(dataset, 10):
            assert np.abs(np.bincount(tenth, minlength=3) / tenth.size - wanted).max() < 0.02
        for batch in np.array_split(dataset, dataset.size // 100):
            assert np.abs(np.bincount(batch, minlength=3) - wanted * batch.size).max() <= 12


@pytest.mark.parametrize("share", SHARES)
def test_above_one_pass_every_window_is_used_equally_often_and_never_again_before_all_are_used(share):
    case = split(share)
    plan = case.sampled(mode="balanced_by_dataset", epoch=2)
    slot, start = case.served(plan)
    for dataset, windows in ((SMALL, 900), (SHORT, 12)):
        own = case.layout.dataset[slot] == dataset
        served = list(zip(slot[own].tolist(), start[own].tolist(), strict=True))
        whole, rest = divmod(6304, windows)
        times = Counter(served)
        assert len(times) == windows
        assert min(times.values()) >= whole
        assert max(times.values()) <= whole + 1 + (3 * rest > windows)
        for number in range(whole):
            assert len(set(served[number * windows : (number + 1) * windows])) == windows


@pytest.mark.parametrize(("share", "mode", "limit"), [
    (0.1, "weighted_by_sample", 1500), (0.4, "weighted_by_sample", 4000), (1.0, "weighted_by_sample", 1500),
    (0.1, "weighted_by_sample", 11_000), (0.4, "balanced_by_dataset", 18_912), (1.0, "weighted_by_dataset", 18_912),
])  # fmt: skip
def test_below_one_pass_epochs_go_on_until_every_window_was_used_then_begin_again(share, mode, limit):
    case = split(share)
    quota = counts(case, case.sampled(mode=mode, limit=limit))[LARGE]
    epochs = []
    for epoch in range(-(-2 * int(SIZES[LARGE]) // quota)):
        slot, start = case.served(case.sampled(mode=mode, limit=limit, epoch=epoch))
        own = case.layout.dataset[slot] == LARGE
        epochs.append(slot[own] * 10_000 + start[own])
    served = np.concatenate(epochs)
    first_pass = SIZES[LARGE] // quota * quota  # windows of the epochs that lie wholly in it
    assert np.unique(served[:first_pass]).size == first_pass
    times = np.unique(served, return_counts=True)[1]
    assert times.size == SIZES[LARGE]
    assert times.min() >= 1
    assert times.max() <= 3


@st.composite
def sampled(draw: st.DrawFn):
    windows = draw(window_runs())
    case = planned(windows, draw(st.integers(1, 10)), draw(st.sampled_from([0.02, 0.2, 0.6, 1.0])))
    settings = {
        "mode": draw(st.sampled_from(MODES)),
        "limit": draw(st.one_of(st.none(), st.integers(1, windows.total + 5))),
        "max_windows_per_basin": draw(st.one_of(st.none(), st.integers(1, 60))),
        "seed": draw(st.integers(0, 2**40)),
        "epoch": draw(st.integers(0, 4)),
        "shuffle": draw(st.booleans()),
    }
    return windows, case, settings


def check_rounds(case: Planned, plan) -> None:
    """Rounds stay within their size, and none is empty."""
    assert (np.diff(plan.window_cuts) > 0).all()
    assert plan.uses.round[0] == 0
    for number in range(plan.num_rounds):
        held = plan.tiles_of(number)
        assert np.unique(held).size == held.size > 0
        if case.round_steps < case.layout.num_rows:
            assert case.tiles.num_rows[held].sum() <= case.round_steps
        used = plan.uses.stretches.tile[plan.uses.of_round(number)]
        assert set(used.tolist()) == set(held.tolist())


@given(sampled())
def test_a_sampled_epoch_serves_windows_of_the_split_and_keeps_to_its_limits(drawn):
    windows, case, settings = drawn
    plan = case.sampled(**settings)
    slot, start = case.served(plan)
    keys = list(zip(case.layout.dataset[slot].tolist(), case.layout.basin[slot].tolist(), start.tolist(), strict=True))
    assert set(keys) <= set(listed(windows))
    cap = settings["max_windows_per_basin"]
    by_basin = Counter((d, b) for d, b, _ in listed(windows))
    available = sum(min(n, cap or n) for n in by_basin.values())
    assert len(keys) == plan.num_windows == min(settings["limit"] or available, available)
    if not settings["shuffle"]:
        assert keys == sorted(set(keys))
    for basin, distinct in Counter((d, b) for d, b, _ in set(keys)).items():
        assert distinct <= min(by_basin[basin], cap or by_basin[basin])
    assert plan.digest() == case.sampled(**settings).digest()
    check_rounds(case, plan)


def test_a_cap_draws_every_window_of_a_basin_equally_often():
    case = planned(windows_from([(0, b, 0, 100) for b in range(6)] + [(0, 6, 0, 5)], 1), 10, 1.0)
    served = np.concatenate([case.served(case.sampled(max_windows_per_basin=30, epoch=e))[1] for e in range(80)])
    assert served.size == 80 * (6 * 30 + 5)
    times = np.bincount(served, minlength=100)[5:]  # the short basin has all of its five windows in every epoch
    assert np.abs(times / (80 * 6 * 0.3) - 1).max() < 0.5
    assert abs(times.mean() / (80 * 6 * 0.3) - 1) < 0.01


def test_small_epochs_mix_as_large_ones_do():
    """Few batches an epoch take a window here and there from many tiles, not whole tiles of few basins."""
    windows = windows_from([(0, b, 0, 1900) for b in range(100)], 1)
    for share in (0.1, 1.0):
        case = planned(windows, 60, share)
        for epoch in (0, 1, 7):
            plan = case.sampled(limit=10 * 64, epoch=epoch)
            found = case.quality(plan, batch_size=64, chunk_steps=100)
            assert len(set(case.served(plan)[0].tolist())) >= 95
            assert found.as_dict()["distinct_basins_ratio"] >= 0.9
            assert plan.num_rounds <= 2 or share == 1.0


def test_plans_of_sampled_epochs_are_those_of_the_first_release():
    """A change here breaks resuming in the middle of an epoch from every checkpoint of such a run."""
    found = {
        f"{mode}, cap {cap}, limit {limit}, share {share}, epoch {epoch}": split(share)
        .sampled(mode=mode, max_windows_per_basin=cap, limit=limit, epoch=epoch, weights=(1, 6, 3)).digest()
        for mode in MODES for cap in (None, 40) for limit in (None, 700) for share in (0.1, 1.0) for epoch in (0, 1)
    }  # fmt: skip
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))
