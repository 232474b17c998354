"""The order of batches: a function of seed and epoch alone (H6, H7), whatever threads, processes and breaks."""

import hashlib
import subprocess
import sys
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

import headrace
from headrace.schemas.errors import ConfigError
from oracle_loader import windows_of

BUDGETS = {"resident": "1GiB", "spilling": 2400}


def opened(index: headrace.Index, budget: str = "resident", **settings: Any) -> headrace.WindowLoader:
    given = {"batch_size": 32, "seed": 5, "num_workers": 2, "memory_budget": BUDGETS[budget], **settings}
    return headrace.WindowLoader(index, "train", **given)


def epoch_of(loader: headrace.WindowLoader) -> list[list[tuple[int, int, int]]]:
    return [windows_of(batch) for batch in loader]


@pytest.mark.parametrize("budget", BUDGETS)
def test_batches_do_not_depend_on_the_number_of_workers(index, budget):
    """Field cases H7 and H15: any number of threads, and the last batch is served with all of them."""
    found = []
    for workers in (1, 2, 4):
        with opened(index, budget, num_workers=workers) as loader:
            found.append([(windows_of(b), b.x.clone(), b.y.clone()) for _ in range(2) for b in loader])
    for other in found[1:]:
        for (windows, x, y), (windows_too, x_too, y_too) in zip(found[0], other, strict=True):
            assert windows == windows_too
            assert torch.equal(x, x_too)
            assert torch.equal(y.nan_to_num(-1), y_too.nan_to_num(-1))


@pytest.mark.parametrize("budget", BUDGETS)
def test_every_epoch_has_its_own_order_and_set_epoch_goes_back_to_it(index, budget):
    """Field case H6: epochs go on by themselves."""
    with opened(index, budget) as loader:
        epochs = [epoch_of(loader) for _ in range(3)]
        assert loader.epoch == 3
        assert len({str(e) for e in epochs}) == 3
        assert len({str(sorted(w for b in e for w in b)) for e in epochs}) == 1
        for number in (1, 0, 2):
            loader.set_epoch(number)
            assert epoch_of(loader) == epochs[number]
            assert loader.epoch == number + 1


@pytest.mark.parametrize("budget", BUDGETS)
def test_after_a_break_the_same_epoch_starts_again(index, budget):
    with opened(index, budget) as loader:
        for k in (1, 3, 8):
            begun = [windows_of(batch) for batch in islice(loader, k)]
            whole = epoch_of(loader)
            assert whole[:k] == begun
            loader.set_epoch(0)


@pytest.mark.parametrize("drop_last", [False, True])
def test_who_takes_all_batches_and_asks_for_no_more_gets_the_next_epoch(index, drop_last):
    """As Lightning does, which counts batches."""
    with opened(index, drop_last=drop_last) as loader:
        epochs = [epoch_of(loader) for _ in range(3)]
        loader.set_epoch(0)
        for epoch in epochs[:2]:
            assert [windows_of(batch) for batch in islice(loader, len(loader))] == epoch
        assert epoch_of(loader) == epochs[2]


@pytest.mark.parametrize("budget", BUDGETS)
def test_an_iterator_kept_after_a_break_does_not_disturb_the_next(index, budget):
    with opened(index, budget) as loader:
        whole = epoch_of(loader)
        loader.set_epoch(0)
        kept = iter(loader)
        next(kept)
        following = iter(loader)
        served = [windows_of(next(following))]
        with pytest.raises(RuntimeError, match="iteration is over"):
            next(kept)
        del kept
        assert served + [windows_of(batch) for batch in following] == whole


def test_seeds_give_different_orders(index):
    orders = set()
    for seed in range(4):
        with opened(index, seed=seed) as loader:
            orders.add(str(epoch_of(loader)))
    assert len(orders) == 4


@pytest.mark.parametrize("budget", BUDGETS)
def test_without_shuffling_windows_come_by_data_set_basin_and_start(index, budget):
    """Field case H10."""
    with opened(index, budget, shuffle=False) as loader:
        for _ in range(2):
            windows = [w for batch in epoch_of(loader) for w in batch]
            assert windows == sorted(windows)


def test_only_the_train_split_is_shuffled_by_itself(index):
    with headrace.WindowLoader(index, "test") as loader:
        windows = [w for batch in loader for w in windows_of(batch)]
    assert windows == sorted(windows)


SCRIPT = """
import hashlib, sys, headrace
with headrace.open_index(sys.argv[1]) as index:
    with headrace.WindowLoader(index, "train", batch_size=32, seed=5, memory_budget=2400) as loader:
        digest = hashlib.sha256()
        for batch in loader:
            for column in (batch.dataset, batch.basin, batch.start, batch.x):
                digest.update(column.numpy().tobytes())
print(digest.hexdigest(), loader.plan(0).digest())
"""


def test_another_process_with_the_same_seed_serves_the_same_bytes(index):
    with opened(index, "spilling") as loader:
        digest = hashlib.sha256()
        for batch in loader:
            for column in (batch.dataset, batch.basin, batch.start, batch.x):
                digest.update(column.numpy().tobytes())
        plan = loader.plan(0).digest()
    command = [sys.executable, "-c", SCRIPT, str(index.path)]
    other = subprocess.run(command, capture_output=True, text=True, check=True)
    assert other.stdout.split() == [digest.hexdigest(), plan]


def test_every_number_of_batches_is_as_long_as_the_loader_says(index):
    for size in (1, 10, 1000):
        for drop_last in (False, True):
            with opened(index, batch_size=size, drop_last=drop_last) as loader:
                sizes = [len(batch) for batch in loader]
                assert len(sizes) == len(loader)
                assert sum(sizes) == (loader.num_windows // size * size if drop_last else loader.num_windows)


@pytest.mark.parametrize("budget", BUDGETS)
def test_short_records_are_served_with_the_others(index, budget):
    """Field case H13: a basin with three windows is in every epoch, however large the batches and small the rounds."""
    window = {"hindcast_length": 67, "warmup_length": 67}
    given = {"missing": {"target_nan_policy": "keep"}, "window": window, "datasets": ["river"]}
    with opened(index, memory_budget=4000, batch_size=256, **given) as loader:
        for _ in range(2):
            (batch,) = loader
            assert np.unique(batch.basin.numpy(), return_counts=True)[1].tolist() == [3] * 5
    with opened(index, budget, batch_size=256) as loader:
        assert len({w[:2] for batch in loader for w in windows_of(batch)}) == 8


def test_a_split_of_one_window_is_one_batch(index):
    window = {"hindcast_length": 69, "warmup_length": 69}
    given = {"missing": {"target_nan_policy": "keep"}, "datasets": ["river"], "basins": ["01000500"]}
    for drop_last in (False, True):
        with opened(index, batch_size=1 + drop_last, window=window, drop_last=drop_last, **given) as loader:
            assert loader.num_windows == 1
            assert len(loader) == (not drop_last)
            for epoch in range(3):
                assert loader.epoch == epoch
                assert [len(batch) for batch in loader] == [1] * len(loader)
                loader.load_state_dict(loader.state_dict())


@pytest.mark.parametrize("epoch", [-1, 1.5, "2", None, True])
def test_an_epoch_that_is_no_number_is_refused(index, epoch):
    with opened(index) as loader, pytest.raises(ConfigError, match="epoch is not valid"):
        loader.set_epoch(epoch)


def test_an_epoch_may_be_cut_short_by_a_number_of_batches(index):
    with opened(index, sampling={"max_batches_per_epoch": 3}) as loader:
        assert len(loader) == 3
        epochs = [epoch_of(loader) for _ in range(3)]
    assert [len(e) for e in epochs] == [3, 3, 3]
    assert len({str(e) for e in epochs}) == 3
