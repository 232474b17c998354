"""Sampled epochs through the loader: values, exposure, resume, ranks, basins left out, thin rounds (H10, H13)."""

import json
import logging
from collections import Counter
from itertools import islice
from typing import Any

import pytest
import torch

import headrace
from headrace.loader.shuffle_quality import measure_quality
from oracle_loader import windows_of

BUDGETS = {"resident": "1GiB", "spilling": 2400}
SAMPLINGS: dict[str, dict[str, Any]] = {
    "balanced": {"mode": "balanced_by_dataset"},
    "weighted": {"mode": "weighted_by_dataset", "max_batches_per_epoch": 4},
    "limited": {"max_batches_per_epoch": 3},
    "capped": {"max_windows_per_basin": 9},
    "capped and balanced": {"mode": "balanced_by_dataset", "max_windows_per_basin": 9, "max_batches_per_epoch": 2},
}


def opened(index: headrace.Index, sampling: dict[str, Any], budget: str = "resident", **settings: Any):
    given = {"batch_size": 32, "seed": 5, "num_workers": 2, "memory_budget": BUDGETS[budget], **settings}
    return headrace.WindowLoader(index, "train", sampling=sampling, **given)


def epoch_of(loader: headrace.WindowLoader) -> list[tuple[int, int, int]]:
    return [window for batch in loader for window in windows_of(batch)]


@pytest.fixture(scope="module")
def rows(index) -> dict[tuple[int, int, int], tuple[torch.Tensor, torch.Tensor]]:
    """Return x and y of every window, as an epoch without sampling serves them."""
    with opened(index, {}, shuffle=False) as loader:
        return {w: (x, y) for b in loader for w, x, y in zip(windows_of(b), b.x, b.y, strict=True)}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_every_window_of_a_sampled_epoch_holds_its_own_values(index, rows, sampling, budget):
    with opened(index, sampling, budget, weights={"river": 1, "creek": 3}) as loader:
        for _ in range(2):
            batches = list(loader)
            assert len(batches) == len(loader)
            for batch in batches:
                x, y = (torch.stack(own) for own in zip(*(rows[w] for w in windows_of(batch)), strict=True))
                assert batch.x.equal(x)
                assert batch.y.isnan().equal(y.isnan())
                assert batch.y.nan_to_num().equal(y.nan_to_num())


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_exposure_says_what_is_served(index, sampling, budget):
    with opened(index, sampling, budget) as loader:
        for epoch in range(3):
            table = loader.exposure().to_pylist()
            assert loader.exposure(epoch).to_pylist() == table
            served = Counter((d, b) for d, b, _ in epoch_of(loader))
            ids = {(loader.dataset_ids[d], loader.basin_ids[d][b]): n for (d, b), n in served.items()}
            assert {(r["dataset_id"], r["basin_id"]): r["served"] for r in table if r["served"]} == ids
            assert sum(r["num_windows"] for r in table) == loader.num_windows


def test_shares_of_data_sets_are_those_asked_for(index):
    for sampling, weights, share in (
        ({"mode": "balanced_by_dataset"}, None, 0.5),
        ({"mode": "weighted_by_dataset"}, {"river": 1, "creek": 4}, 0.8),
        ({"mode": "weighted_by_dataset"}, None, 0.5),
    ):
        with opened(index, sampling, weights=weights) as loader:
            served = [d for d, _, _ in epoch_of(loader)]
            assert len(served) == loader.num_windows
            assert abs(served.count(1) / len(served) - share) < 0.01


@pytest.mark.parametrize(
    ("name", "budget"), [("balanced", "spilling"), ("limited", "resident"), ("capped and balanced", "spilling")]
)
def test_a_sampled_epoch_resumes_where_it_stopped_with_any_number_of_ranks(index, name, budget):
    sampling = SAMPLINGS[name]
    with opened(index, sampling, budget) as loader:
        first, whole, following = (epoch_of(loader) for _ in range(3))
        assert len({str(first), str(whole), str(following)}) == 3
    with opened(index, sampling, budget) as loader:
        loader.set_epoch(1)
        done = [w for batch in islice(loader, 2) for w in windows_of(batch)]
        state = json.loads(json.dumps(loader.state_dict()))
    with opened(index, sampling, budget, seed=9) as resumed:
        resumed.load_state_dict(state)
        assert done + epoch_of(resumed) == whole
        assert epoch_of(resumed) == following
    rest = []
    for rank in range(3):
        with opened(index, sampling, budget, rank=rank, world_size=3, batch_size=8) as resumed:
            resumed.load_state_dict(state)
            rest += epoch_of(resumed)
    assert sorted(done + rest) == sorted(whole)


def test_a_cap_serves_other_windows_of_every_basin_in_each_epoch(index):
    with opened(index, {}) as loader:
        there = Counter((d, b) for d, b, _ in epoch_of(loader))
    epochs = []
    with opened(index, {"max_windows_per_basin": 9}) as loader:
        for _ in range(4):
            served = epoch_of(loader)
            assert len(set(served)) == len(served) == sum(min(n, 9) for n in there.values())
            assert Counter((d, b) for d, b, _ in served) == {k: min(n, 9) for k, n in there.items()}
            epochs.append(set(served))
    assert len(set.union(*epochs)) > 2 * len(epochs[0])


def test_without_shuffling_windows_keep_their_order_and_quotas_do_not_count(index):
    with opened(index, {}, shuffle=False) as loader:
        natural = epoch_of(loader)
    for budget in BUDGETS:
        with opened(index, {"mode": "balanced_by_dataset"}, budget, shuffle=False) as loader:
            assert epoch_of(loader) == epoch_of(loader) == natural
        with opened(index, {"max_batches_per_epoch": 3}, budget, shuffle=False) as loader:
            assert epoch_of(loader) == epoch_of(loader) == natural[: 3 * 32]
        with opened(index, {"max_windows_per_basin": 9}, budget, shuffle=False) as loader:
            capped = epoch_of(loader)
            assert capped == epoch_of(loader) == sorted(capped)
            assert max(Counter((d, b) for d, b, _ in capped).values()) == 9


def test_basins_left_out_of_an_epoch_are_counted_once(index, caplog):
    with caplog.at_level(logging.WARNING), opened(index, {"max_batches_per_epoch": 1}, batch_size=2) as loader:
        for _ in range(3):
            epoch_of(loader)
        without = sum(r["served"] == 0 for r in loader.exposure(0).to_pylist())
    said = [r.getMessage() for r in caplog.records if "get no window" in r.getMessage()]
    assert len(said) == 1
    assert f"{without} of 8 basins get no window in epoch 0" in said[0]
    caplog.clear()
    with caplog.at_level(logging.WARNING), opened(index, {"mode": "balanced_by_dataset"}) as loader:
        epoch_of(loader)
    assert not caplog.records


def test_quality_of_a_loader_is_measured_without_reading(index):
    with opened(index, {"mode": "balanced_by_dataset"}) as loader:
        found = measure_quality(loader, max_batches=20)
        assert loader.chunks_read == 0
        first = next(iter(loader))
        assert found.served["entropy_dataset"] == pytest.approx(0.6931, abs=1e-3)
        assert len(set(zip(first.dataset.tolist(), first.basin.tolist(), strict=True))) <= 8
    assert measure_quality(loader).as_dict()["distinct_basins_ratio"] > 0.9


def test_a_budget_too_small_to_mix_is_said_once_with_one_that_does(index, caplog):
    said = []
    for budget in (600, 1500, "1GiB"):
        caplog.clear()
        with caplog.at_level(logging.WARNING), opened(index, {}, memory_budget=budget) as loader:
            for _ in range(2):
                epoch_of(loader)
        said.append([r.getMessage() for r in caplog.records])
    [words], enough, resident = said
    assert "a batch mixes about 0.38 of the basins that a perfect shuffle would" in words
    assert words.endswith("about 1.4 KiB would do")
    assert enough == resident == []
