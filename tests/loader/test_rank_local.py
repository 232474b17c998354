"""``rank_local``: each rank serves windows of its own; equal counts, nothing twice, nothing lost, less read."""

from itertools import islice
from typing import Any

import pytest

import headrace
from build_here import build_here
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError
from oracle_loader import OracleLoader, check_batch, windows_of
from synthetic import write_store

BUDGETS = ["1GiB", 2400]
Windows = list[list[tuple[int, int, int]]]


def opened(index: headrace.Index, rank: int, world: int, **settings: Any) -> headrace.WindowLoader:
    given = {"batch_size": 16, "seed": 5, "num_workers": 1, "rank_local": True, **settings}
    return headrace.WindowLoader(index, "train", rank=rank, world_size=world, **given)


def flat(batches: Windows) -> list[tuple[int, int, int]]:
    return [window for batch in batches for window in batch]


@pytest.fixture(scope="module")
def every(index) -> list[tuple[int, int, int]]:
    with headrace.WindowLoader(index, "train", batch_size=64) as loader:
        return sorted(flat([windows_of(batch) for batch in loader]))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("world", "batch_size"), [(2, 5), (3, 64), (4, 1000)])
def test_every_window_is_served_once_in_each_epoch_and_counts_are_equal(index, every, budget, world, batch_size):
    ranks: list[list[Windows]] = []
    for rank in range(world):
        with opened(index, rank, world, memory_budget=budget, batch_size=batch_size) as loader:
            assert loader.num_windows == len(every)
            ranks.append([[windows_of(batch) for batch in loader] for _ in range(2)])
            assert all(len(epoch) == len(loader) for epoch in ranks[-1])
    for epoch in range(2):
        assert len({len(own[epoch]) for own in ranks}) == 1
        assert sorted(w for own in ranks for w in flat(own[epoch])) == every
        sizes = [len(batch) for own in ranks for batch in own[epoch]]
        assert 0 < min(sizes) <= max(sizes) <= batch_size
    assert all(sorted(flat(first)) == sorted(flat(second)) for first, second in ranks)
    assert all(first != second for first, second in ranks)


def test_values_are_those_of_any_other_loader(joint, index):
    oracle = OracleLoader(joint.config, "train")
    for rank in range(2):
        with opened(index, rank, 2, batch_size=40, memory_budget=2400) as loader:
            for batch in loader:
                check_batch(batch, oracle, loader)


def test_ranks_read_each_chunk_once_between_them_and_hold_their_part(tmp_path):
    store = write_store(tmp_path / "a.zarr", basins=8, steps=40, variables=["rain", "flow"], chunks=(2, 20))
    config = parse_config({
        "datasets": {"a": {
            "timeseries": str(store.path), "t_range_train": ["2000-01-01", "2000-02-09"],
            "variables": {"relevant": ["rain"], "target": ["flow"]},
        }},
        "window": {"hindcast_length": 4, "forecast_length": 1, "warmup_length": 3},
    })  # fmt: skip
    with headrace.open_index(build_here(config, tmp_path / "index")) as index:
        for world in (1, 2, 4):
            read, rows = 0, set()
            for rank in range(world):
                with opened(index, rank, world) as loader:
                    assert sum(len(batch) for batch in loader) == loader.num_windows // world
                    read += loader.chunks_read
                    rows.add(loader.state_dict()["round_steps"])
            assert read == 2 * 4 * 2
            assert rows == {8 * 40 // world}


def test_a_split_that_fits_the_ranks_together_is_resident(index):
    budget = 6000
    with (
        headrace.WindowLoader(index, "train", memory_budget=budget) as whole,
        opened(index, 0, 4, memory_budget=budget) as part,
    ):
        assert not whole.resident
        assert part.resident


@pytest.mark.parametrize("budget", BUDGETS)
def test_resuming_after_any_batch_gives_exactly_the_rest_then_the_next_epoch(index, budget):
    world = 3
    for rank in (0, 2):
        with opened(index, rank, world, memory_budget=budget) as loader:
            whole, following = ([windows_of(batch) for batch in loader] for _ in range(2))
        for k in (1, len(whole) // 2, len(whole)):
            with opened(index, 1, world, memory_budget=budget) as first:  # any rank's state serves all
                assert len(list(islice(first, k))) == k
                state = first.state_dict()
            with opened(index, rank, world, memory_budget=budget, num_workers=2, seed=9) as second:
                second.load_state_dict(state)
                assert second.state_dict() == state
                assert whole[:k] + [windows_of(batch) for batch in second] == whole
                if k == 1:
                    assert [windows_of(batch) for batch in second] == following


def test_another_batch_size_serves_the_rest(index, every):
    served = []
    for rank in range(2):
        with opened(index, rank, 2) as loader:
            served += [w for batch in islice(loader, 3) for w in windows_of(batch)]
            state = loader.state_dict()
        with opened(index, rank, 2, batch_size=50) as loader:
            loader.load_state_dict(state)
            served += [w for batch in loader for w in windows_of(batch)]
    assert sorted(served) == every


@pytest.mark.parametrize("other", [{"world": 3}, {"rank_local": False}])
def test_the_middle_of_an_epoch_is_refused_where_windows_are_shared_out_otherwise(index, every, other):
    with opened(index, 0, 2) as loader:
        at_start = loader.state_dict()
        next(iter(loader))
        inside = loader.state_dict()
        loader.set_epoch(1)
        following = loader.state_dict()
        loader.set_epoch(0)
        for _ in loader:
            at_end = loader.state_dict()
    settings = {"world": 2, **other}
    with opened(index, 0, settings.pop("world"), **settings) as loader:
        with pytest.raises(ConfigError, match="shared out otherwise"):
            loader.load_state_dict(inside)
        for state, epoch in ((at_start, 0), (following, 1)):
            loader.load_state_dict(state)
            assert (loader.epoch, loader.state_dict()["windows_consumed"]) == (epoch, 0)
            assert len(list(loader)) == len(loader)
        loader.load_state_dict(at_end)
        assert list(loader) == []
        assert loader.epoch == 1


def test_a_shared_epoch_is_not_continued_by_ranks_with_their_own_windows(index):
    with opened(index, 0, 2, rank_local=False) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with opened(index, 0, 2) as loader, pytest.raises(ConfigError, match="shared out otherwise"):
        loader.load_state_dict(state)


def test_drop_last_gives_full_batches_and_a_short_epoch_its_number(index):
    counts = []
    for rank in range(2):
        with opened(index, rank, 2, drop_last=True) as loader:
            sizes = [len(batch) for batch in loader]
            assert set(sizes) == {16}
            counts.append(len(sizes))
        with opened(index, rank, 2, sampling={"max_batches_per_epoch": 3}) as loader:
            assert [len(batch) for batch in loader] == [16] * 3
            assert loader.epoch == 1
    assert counts[0] == counts[1]


@pytest.mark.parametrize("drop_last", [False, True])
def test_fewer_windows_than_ranks_are_refused_on_every_rank(index, drop_last):
    few = {"basins": {"creek": ["c0"], "river": []}, "window": {"hindcast_length": 68, "warmup_length": 68}}
    with opened(index, 0, 1, missing={"target_nan_policy": "keep"}, **few) as loader:
        assert loader.num_windows == 2
    for rank in (0, 4):
        with pytest.raises(ConfigError, match="fewer windows than ranks"):
            opened(index, rank, 5, drop_last=drop_last, missing={"target_nan_policy": "keep"}, **few)


def test_a_single_process_has_all_windows(index, every):
    with headrace.WindowLoader(index, "train", batch_size=64, rank_local=True) as loader:
        assert sorted(flat([windows_of(batch) for batch in loader])) == every
        assert loader.state_dict()["by_rank"] is None
