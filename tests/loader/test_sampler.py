"""``ChunkBatchSampler``: every window once per epoch, ranks alike, chunks local, exact state (H1–H4, H6, H15)."""

import itertools
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import headrace
from headrace.schemas.errors import ConfigError, StaleIndexError
from joint_stores import write_joint

BUDGETS = {"one round": "1MiB", "rounds": 40_000, "small": 5_000}
BOTH = pytest.mark.parametrize("budget", ["one round", "rounds"])


@pytest.fixture(scope="module")
def sampled(index) -> Callable[..., headrace.ChunkBatchSampler]:
    """Make samplers over data sets that are kept for all tests."""

    @cache
    def dataset(budget: str | int, split: str) -> headrace.WindowDataset:
        return headrace.WindowDataset(index, split, memory_budget=budget)

    def make(budget: str = "rounds", split: str = "train", **settings: Any) -> headrace.ChunkBatchSampler:
        given = {"batch_size": 16, "seed": 3, **settings}
        return headrace.ChunkBatchSampler(dataset(BUDGETS[budget], split), **given)

    return make


@BOTH
@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_every_window_is_served_once_by_one_rank_in_equally_many_batches(sampled, budget, world_size, drop_last):
    ranks = [sampled(budget, rank=r, world_size=world_size, drop_last=drop_last) for r in range(world_size)]
    total = len(ranks[0]._dataset)
    for _ in range(2):
        epoch = [list(sampler) for sampler in ranks]
        assert {len(batches) for batches in epoch} == {len(ranks[0])}
        served = sorted(n for batches in epoch for batch in batches for n in batch)
        left_out = total % (16 * world_size) if drop_last else 0
        assert len(served) == len(set(served)) == total - left_out
        assert all(0 <= n < total for n in served)
        if drop_last:
            assert {len(batch) for batches in epoch for batch in batches} == {16}


@BOTH
def test_every_epoch_has_its_own_order_and_set_epoch_goes_back_to_it(sampled, budget):
    sampler = sampled(budget)
    epochs = [list(sampler) for _ in range(3)]
    assert sampler.epoch == 3
    assert len({str(epoch) for epoch in epochs}) == 3
    for number in (1, 0, 2):
        sampler.set_epoch(number)
        assert list(sampler) == epochs[number]
    assert list(sampled(budget, seed=4)) != epochs[0]


def test_without_shuffling_windows_come_chunk_by_chunk_and_in_every_epoch_alike(sampled):
    sampler = sampled(split="test")
    first, second = list(sampler), list(sampler)
    assert first == second
    assert sorted(itertools.chain(*first)) == list(range(len(sampler._dataset)))


def test_one_round_mixes_all_basins_and_smaller_ones_stay_within_their_chunks(sampled):
    mixed, local = sampled("one round"), sampled("rounds", most_workers=8)
    mixed.set_epoch(1)
    assert (mixed.plan().num_rounds, local.plan().num_rounds) == (1, 5)
    basins = [len({(b.dataset, b.basin) for b in batch}) for batch in _located(mixed)]
    assert min(basins[:-1]) >= 5
    local.set_epoch(1)
    columns = [len({local._dataset.column[b.slot] for b in batch}) for batch in _located(local)]
    assert sorted(columns)[len(columns) // 2] == 1


def test_a_cache_of_one_round_reads_chunks_about_once(index, sampled):
    """The cache is far smaller than what is decoded, and a random order would read many times as much."""
    sampler = sampled("rounds", most_workers=4)
    dataset = headrace.WindowDataset(index, "train", memory_budget=10_000)
    for batch in sampler:
        dataset.__getitems__(batch)
    local = dataset.chunks_read
    stored = headrace.WindowDataset(index, "train", memory_budget="1GiB")
    stored.__getitems__(range(len(stored)))
    assert local <= 2 * stored.chunks_read


@BOTH
def test_a_state_continues_with_exactly_the_windows_that_remained_on_any_number_of_ranks(sampled, budget):
    whole = sampled(budget)
    whole.set_epoch(1)
    batches = list(whole)
    for taken, world_size in ((1, 1), (9, 3), (len(batches) - 1, 2)):
        sampler = sampled(budget)
        sampler.set_epoch(1)
        begun = list(itertools.islice(sampler, taken))
        assert begun == batches[:taken]
        resumed = [sampled(budget, rank=r, world_size=world_size) for r in range(world_size)]
        for other in resumed:
            other.load_state_dict(sampler.state_dict())
        rest = [list(other) for other in resumed]
        assert sorted(n for parts in rest for batch in parts for n in batch) == sorted(
            itertools.chain(*batches[taken:])
        )
        assert {other.epoch for other in resumed} == {2}


def test_the_state_counts_batches_that_training_took_when_it_is_told(sampled):
    sampler = sampled()
    batches = list(sampler)  # as a DataLoader with workers that reads far ahead
    assert (sampler.state_dict()["epoch"], sampler.state_dict()["windows_consumed"]) == (1, 0)
    other = sampled()
    other.load_state_dict(sampler.state_dict(batches=5))
    assert list(other) == batches[5:]
    assert (sampler.state_dict(batches=0)["epoch"], sampler.state_dict(batches=len(batches))["epoch"]) == (0, 1)


def test_without_workers_the_state_is_exact_at_any_batch(sampled):
    sampler = sampled()
    loader = DataLoader(sampler._dataset, batch_sampler=sampler, collate_fn=sampler._dataset.collate)
    assert len(loader) == len(sampler)
    for number, batch in enumerate(loader):
        served = sampler.state_dict()["windows_consumed"]
        if number == 3:
            assert served == 4 * len(batch)
            break
    assert len(list(loader)) == len(sampler)  # after a break the same epoch starts again
    assert sampler.epoch == 1


def test_a_state_of_other_settings_another_index_or_larger_rounds_is_refused(sampled, tmp_path):
    sampler = sampled("one round", most_workers=1)
    state = sampler.state_dict()
    with pytest.raises(ConfigError, match="other settings"):
        sampled(split="test").load_state_dict(state)
    with pytest.raises(ConfigError, match=r"(?s)memory_budget is too small.*at least"):
        sampled("small").load_state_dict(state)
    with pytest.raises(ConfigError, match="cannot be read"):
        sampler.load_state_dict({**state, "epoch": -1})
    for damaged in ({**state, "windows_consumed": 10**9}, [state], None):
        with pytest.raises(ConfigError, match="cannot be read"):
            sampler.load_state_dict(damaged)
    moved = write_joint(tmp_path, window={"hindcast_length": 7, "forecast_length": 1, "warmup_length": 5})
    with headrace.open_index(moved.index) as other:
        stranger = headrace.ChunkBatchSampler(headrace.WindowDataset(other, "train"), batch_size=16)
    with pytest.raises(StaleIndexError, match="another index"):
        stranger.load_state_dict(state)


def test_more_ranks_than_windows_and_senseless_numbers_are_refused(sampled):
    with pytest.raises(ConfigError, match="fewer windows than ranks"):
        sampled(rank=0, world_size=10_000)
    for wrong in (
        {"batch_size": 0},
        {"seed": -1},
        {"most_workers": 0},
        {"rank": 1},
        {"shuffle": 2},
        {"drop_last": "no"},
    ):
        with pytest.raises(ConfigError):
            sampled(**wrong)


def test_a_rest_below_a_batch_is_left_out_and_the_next_epoch_is_due(sampled):
    sampler = sampled(batch_size=len(sampled()._dataset) // 2 + 1, drop_last=True)
    state = sampler.state_dict()
    sampler.load_state_dict({**state, "windows_consumed": len(sampled()._dataset) // 2 + 1})
    assert list(sampler) == []
    assert sampler.epoch == 1
    assert len(list(sampler)) == 1
    assert sampler.epoch == 2


def test_a_share_too_small_for_local_reads_is_said(sampled, caplog):
    sampled("rounds", most_workers=40)
    assert re.search(r"a worker may keep 1000 B .* need up to .* raise memory_budget", caplog.text)
    caplog.clear()
    sampled("one round")
    assert caplog.text == ""


class _Place:
    def __init__(self, sampler: headrace.ChunkBatchSampler, number: int) -> None:
        slot, _ = sampler._dataset.table.locate(np.array([number]))
        self.slot = int(slot[0])
        layout = sampler._dataset.layout
        self.dataset, self.basin = int(layout.dataset[self.slot]), int(layout.basin[self.slot])


def _located(sampler: headrace.ChunkBatchSampler) -> list[list[_Place]]:
    return [[_Place(sampler, number) for number in batch] for batch in sampler]
