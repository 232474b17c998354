"""Exact resume: what was served and what remains make the epoch, wherever it stopped and goes on (H3, H4)."""

import json
from itertools import islice
from typing import Any

import pytest
import torch

import headrace
from headrace.schemas.errors import ConfigError, StaleIndexError
from joint_stores import write_joint
from oracle_loader import windows_of

BUDGETS = {"resident": "1GiB", "spilling": 2400}


def opened(index: headrace.Index, budget: str = "resident", **settings: Any) -> headrace.WindowLoader:
    given = {"batch_size": 64, "seed": 5, "num_workers": 2, "memory_budget": BUDGETS[budget], **settings}
    return headrace.WindowLoader(index, "train", **given)


def epoch_of(loader: headrace.WindowLoader) -> list[list[tuple[int, int, int]]]:
    return [windows_of(batch) for batch in loader]


def flat(batches: list[list[tuple[int, int, int]]]) -> list[tuple[int, int, int]]:
    return [window for batch in batches for window in batch]


def saved(state: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(state))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("epoch", [0, 1])
def test_resuming_after_any_batch_gives_exactly_the_rest_then_the_next_epoch(index, budget, epoch):
    """Field cases H3 and H14: any batch, any number of workers; a state holds no batch that was only prefetched."""
    with opened(index, budget) as loader:
        loader.set_epoch(epoch)
        whole, following = epoch_of(loader), epoch_of(loader)
    assert len(whole) > 6
    with opened(index, budget, num_workers=3) as first:
        first.set_epoch(epoch)
        states = [saved(first.state_dict())]
        states += [saved(first.state_dict()) for _ in first]
    assert len(states) == len(whole) + 1
    for k, state in enumerate(states):
        done = whole[:k]
        assert state["windows_consumed"] == len(flat(done))
        with opened(index, budget, num_workers=1 + k % 3, seed=99) as second:
            second.load_state_dict(state)
            assert second.state_dict() == state
            assert done + epoch_of(second) == whole
            if k % 5 == 0:
                assert epoch_of(second) == following


def test_a_state_saved_twice_on_the_way_does_not_drift(index):
    """Field case H4: states hold what the consumer got, so saving and loading again and again loses nothing."""
    with opened(index, "spilling") as loader:
        whole = epoch_of(loader)
    done: list[list[tuple[int, int, int]]] = []
    state = None
    while len(done) < len(whole):
        with opened(index, "spilling") as loader:
            if state is not None:
                loader.load_state_dict(state)
            done += [windows_of(batch) for batch in islice(loader, 3)]
            state = saved(saved(loader.state_dict()))
    assert done == whole


def test_a_state_saved_inside_the_last_batch_goes_on_with_the_next_epoch(index):
    with opened(index) as loader:
        for _ in loader:
            state = loader.state_dict()
        following = epoch_of(loader)
    with opened(index) as resumed:
        resumed.load_state_dict(state)
        assert epoch_of(resumed) == []
        assert resumed.epoch == 1
        assert epoch_of(resumed) == following


def test_a_state_between_epochs_belongs_to_the_next_one(index):
    """Field case H4: a state saved at the end drops no epoch."""
    with opened(index) as loader:
        epoch_of(loader)
        state = loader.state_dict()
        following = epoch_of(loader)
    assert (state["epoch"], state["windows_consumed"]) == (1, 0)
    with opened(index) as resumed:
        resumed.load_state_dict(state)
        assert epoch_of(resumed) == following


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("worlds", [(1, 2, 4, 3), (3, 1, 5, 2)])
def test_ranks_may_change_at_every_stop_and_the_rest_stays_the_rest(index, budget, worlds):
    with opened(index, budget) as loader:
        every = sorted(flat(epoch_of(loader)))
    served: list[tuple[int, int, int]] = []
    state = None
    for stop, world in zip((3, 2, 1, None), worlds, strict=True):
        states = []
        for rank in range(world):
            with opened(index, budget, batch_size=16, rank=rank, world_size=world) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                served += flat([windows_of(batch) for batch in islice(loader, stop)])
                states.append(loader.state_dict())
        assert all(s == states[0] for s in states)
        state = states[0]
        assert stop is None or state["windows_consumed"] == len(served)
    assert sorted(served) == every


@pytest.mark.parametrize("budgets", [(2400, 5000), (2400, "1GiB"), (3000, 2999 + 12)])
def test_a_larger_budget_follows_the_rounds_of_a_smaller_one(index, budgets):
    """The rounds travel in the state; whoever can hold them serves the same epoch."""
    with opened(index, memory_budget=budgets[0]) as loader:
        whole, following = epoch_of(loader), epoch_of(loader)
    with opened(index, memory_budget=budgets[0]) as loader:
        done = [windows_of(batch) for batch in islice(loader, 4)]
        state = loader.state_dict()
    with opened(index, memory_budget=budgets[1]) as resumed:
        resumed.load_state_dict(state)
        assert done + epoch_of(resumed) == whole
        assert epoch_of(resumed) == following
        assert resumed.state_dict()["round_steps"] == state["round_steps"]


@pytest.mark.parametrize("made_with", ["1GiB", 5000])
def test_rounds_that_the_budget_cannot_hold_are_refused_with_both_sizes(index, made_with):
    """Field case E12: needed and available bytes."""
    with opened(index, memory_budget=made_with) as loader:
        state = loader.state_dict()
    with opened(index, "spilling") as small:
        before = epoch_of(small)
        small.set_epoch(0)
        with pytest.raises(ConfigError, match=r"too small for the rounds.*\n.*\n.*at least .*KiB.*\n.*got: +2.3 KiB"):
            small.load_state_dict(state)
        assert epoch_of(small) == before


@pytest.mark.parametrize(
    "differing",
    [
        {"basins": {"river": ["01000500"]}},
        {"datasets": ["creek"]},
        {"missing": {"missing_policy": "fill_and_mask"}},
        {"normalization": {"method": "standard"}},
        {"shuffle": False},
        {"window": {"hindcast_length": 7}},
    ],
)
def test_a_state_of_other_settings_is_refused(index, differing):
    with opened(index, **differing) as other:
        state = other.state_dict()
    with opened(index) as loader, pytest.raises(ConfigError, match="other settings"):
        loader.load_state_dict(state)


def test_a_state_of_another_split_is_refused(index):
    with headrace.WindowLoader(index, "test", shuffle=True) as other:
        state = other.state_dict()
    with opened(index) as loader, pytest.raises(ConfigError, match="other settings"):
        loader.load_state_dict(state)


def test_a_state_of_another_index_is_refused(index, tmp_path):
    write_joint(tmp_path, window={"hindcast_length": 5, "forecast_length": 1, "warmup_length": 4})
    with headrace.open_index(tmp_path / "index") as other, opened(other) as loader:
        state = loader.state_dict()
    with opened(index) as loader, pytest.raises(StaleIndexError, match="another index"):
        loader.load_state_dict(state)


def test_batch_size_may_change_at_a_stop(index):
    with opened(index) as loader:
        whole = flat(epoch_of(loader))
        done = flat([windows_of(batch) for batch in islice(loader, 2)])
        loader.set_epoch(0)
        done = flat([windows_of(batch) for batch in islice(loader, 2)])
        state = loader.state_dict()
    with opened(index, batch_size=7) as resumed:
        resumed.load_state_dict(state)
        assert done + flat(epoch_of(resumed)) == whole


def test_loading_a_state_in_the_middle_of_an_epoch_ends_that_epoch(index):
    with opened(index, "spilling") as loader:
        whole = epoch_of(loader)
        loader.set_epoch(0)
        running = iter(loader)
        first = next(running)
        state = loader.state_dict()
        loader.load_state_dict(state)
        with pytest.raises(RuntimeError, match="iteration is over"):
            next(running)
        assert [windows_of(first), *epoch_of(loader)] == whole


def test_values_of_a_resumed_epoch_are_those_of_an_unbroken_one(index):
    with opened(index, "spilling") as loader:
        whole = [batch.x.clone() for batch in loader]
    with opened(index, "spilling") as loader:
        done = [batch.x.clone() for batch in islice(loader, 5)]
        state = loader.state_dict()
    with opened(index, "resident") as resumed:
        resumed.load_state_dict(state)
        rest = [batch.x for batch in resumed]
    assert all(torch.equal(a, b) for a, b in zip([*done, *rest], whole, strict=True))


def test_a_state_before_the_first_batch_is_the_whole_epoch(index):
    with opened(index) as loader:
        state = saved(loader.state_dict())
        whole = epoch_of(loader)
    with opened(index, seed=1) as resumed:
        resumed.load_state_dict(state)
        assert epoch_of(resumed) == whole
    assert state["epoch_windows"] == len(flat(whole))


@pytest.mark.parametrize(
    "damage",
    [{"windows_consumed": 10**6}, {"windows_consumed": 10**6, "epoch_windows": 10**6}, {"windows_consumed": None}],
)
def test_a_state_beyond_the_epoch_is_refused_and_changes_nothing(index, damage):
    with opened(index) as loader:
        whole = epoch_of(loader)
        loader.set_epoch(0)
        with pytest.raises(ConfigError, match="cannot be read"):
            loader.load_state_dict({**loader.state_dict(), **damage})
        with pytest.raises(ConfigError, match="cannot be read"):
            loader.load_state_dict(None)
        assert epoch_of(loader) == whole
