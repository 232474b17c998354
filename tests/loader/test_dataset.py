"""``WindowDataset``: windows by number, equal to those of ``WindowLoader`` bit for bit, in bounded memory (E3, E5)."""

import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, default_collate

import headrace
from headrace.schemas.errors import ConfigError, StaleIndexError
from joint_stores import write_joint
from oracle_loader import windows_of

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "masks": {"missing": {"missing_policy": "fill_and_mask"}, "normalization": {"scope": "per_basin"}},
    "window": {"window": {"hindcast_length": 20, "warmup_length": 0}, "datasets": ["river"]},
    "basins": {"basins": {"river": ["00003", "00001"]}, "missing": {"target_nan_policy": "keep"}},
}


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and np.array_equal(one.numpy(), other.numpy(), equal_nan=one.is_floating_point())


def equal(one: headrace.Batch, other: headrace.Batch) -> bool:
    return all(same(getattr(one, name), getattr(other, name)) for name in one.__slots__)


@pytest.fixture
def dataset(index) -> headrace.WindowDataset:
    return headrace.WindowDataset(index, "train")


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_windows_are_those_of_the_loader_in_natural_order(index, joint, variant, split):
    settings = dict(VARIANTS[variant])
    if "basins" in settings:
        settings["basins"] = {"river": joint.stores["river"].basin_ids[1:4:2]}
    dataset = headrace.WindowDataset(index, split, memory_budget=20_000, **settings)
    with headrace.WindowLoader(index, split, shuffle=False, batch_size=50, num_workers=1, **settings) as loader:
        assert len(dataset) == loader.num_windows
        assert (dataset.x_names, dataset.static_names, dataset.y_names) == (
            loader.x_names,
            loader.static_names,
            loader.y_names,
        )
        first = 0
        for batch in loader:
            assert equal(dataset.__getitems__(range(first, first + len(batch))).batch, batch)
            first += len(batch)
        assert same(dataset.denormalize(batch.y, batch), loader.denormalize(batch.y, batch))


def test_any_selection_in_any_order_is_gathered_alike(dataset):
    numbers = np.random.default_rng(0).integers(0, len(dataset), 300)
    items = dataset.__getitems__(numbers.tolist())
    assert len(items) == 300
    for number, item in list(zip(numbers, items, strict=True))[::37]:
        one = dataset[int(number)]
        assert all(same(item[name], one[name]) for name in one)
    assert len(dataset.__getitems__([]).batch) == 0


def test_numbers_outside_are_refused_and_negative_ones_count_from_the_end(dataset):
    last = dataset[len(dataset) - 1]
    assert all(same(dataset[-1][name], last[name]) for name in last)
    for number in (len(dataset), -len(dataset) - 1):
        with pytest.raises(IndexError, match="outside"):
            dataset[number]
    assert sum(1 for _ in dataset) == len(dataset)


def test_torch_collates_items_to_the_batch_that_collate_returns(dataset):
    numbers = [5, 300, 7]
    items = dataset.__getitems__(numbers)
    stacked = default_collate(items)
    batch = dataset.collate(items)
    assert batch is items.batch
    assert all(same(stacked[name], getattr(batch, name)) for name in batch.__slots__)
    assert equal(dataset.collate([dataset[n] for n in numbers]), batch)


def test_a_plain_data_loader_needs_no_sampler_and_no_collate(dataset):
    batches = list(DataLoader(dataset, batch_size=100))
    assert sum(batch["x"].shape[0] for batch in batches) == len(dataset)
    assert equal(headrace.Batch(**batches[1]), dataset.__getitems__(range(100, 200)).batch)


def test_a_window_is_read_after_the_index_is_closed(joint):
    with headrace.open_index(joint.index) as index:
        dataset = headrace.WindowDataset(index, "test")
    assert windows_of(dataset.__getitems__([0]).batch)[0][:2] == (0, 0)


def test_what_goes_to_a_worker_does_not_grow_with_the_number_of_windows(index):
    sizes = {}
    for stride in (1, 8):
        dataset = headrace.WindowDataset(
            index, "train", window={"stride": stride}, missing={"target_nan_policy": "keep"}
        )
        dataset.__getitems__([0])
        sizes[len(dataset)] = len(pickle.dumps(dataset))
    few, many = sorted(sizes)
    assert many > 5 * few
    assert sizes[many] < sizes[few] + 500
    assert b"00003" not in pickle.dumps(dataset._sources)


def test_a_copy_opens_its_own_stores(dataset):
    wanted = dataset.__getitems__([3, 400]).batch
    copied = pickle.loads(pickle.dumps(dataset))
    assert copied.chunks_read == 0
    assert equal(copied.__getitems__([3, 400]).batch, wanted)
    assert copied.chunks_read > 0


def test_decoded_chunks_keep_to_the_memory_budget(index):
    whole = headrace.WindowDataset(index, "train", memory_budget="1MiB")
    small = headrace.WindowDataset(index, "train", memory_budget=2500)
    numbers = np.random.default_rng(1).permutation(len(whole))
    for part in np.array_split(numbers, 20):
        assert equal(small.__getitems__(part).batch, whole.__getitems__(part).batch)
        assert small._cache.nbytes <= 2500 < whole._cache.nbytes
    assert small.chunks_read > 3 * whole.chunks_read
    before = whole.chunks_read
    whole.__getitems__(numbers)
    assert whole.chunks_read == before


def test_a_budget_below_one_chunk_is_refused_with_both_sizes(index):
    dataset = headrace.WindowDataset(index, "train", memory_budget=300)
    with pytest.raises(ConfigError, match=re.compile(r"memory_budget is too small.*one decoded chunk.*300 B", re.S)):
        dataset.__getitems__([0])


def test_a_chunk_that_changed_is_named(tmp_path):
    joint = write_joint(tmp_path)
    with headrace.open_index(joint.index) as index:
        dataset = headrace.WindowDataset(index, "train", datasets=["river"])
        os.utime(Path(joint.stores["river"].path, "rain", "c", "1", "0"), ns=(1, 1))
        with pytest.raises(StaleIndexError, match=re.compile(r"chunk changed.*rain/c/1/0", re.S)):
            dataset.__getitems__(range(len(dataset)))


def test_a_split_without_windows_is_refused(index):
    with pytest.raises(ConfigError, match="split valid has no window"):
        headrace.WindowDataset(index, "valid")
