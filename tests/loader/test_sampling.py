"""Quotas and caps, from plans alone: exact shares, mixed throughout, no repeats before all is used (H10, H13)."""

from collections import Counter

import numpy as np
import pytest

from planned import Planned, planned
from random_windows import windows_from

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


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("epoch", [0, 1, 5])
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


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("mode", "limit"), [
    ("weighted_by_sample", 500), ("weighted_by_sample", 4000), ("weighted_by_sample", 11_000),
    ("balanced_by_dataset", 1200), ("weighted_by_dataset", 4000),
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
