"""A mended time axis: index and batches are those of a store that was written in order in the first place."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import zarr
from hypothesis import given
from hypothesis import strategies as st

import headrace
from build_here import build_here
from headrace.indexer import units
from headrace.indexer.time_order import mended
from headrace.schemas.config import Config
from headrace.schemas.errors import ReadError, SourceError
from indexing import build_inline, config, dataset, rows
from synthetic import SyntheticStore, write_store

STEPS, GAP_AFTER = 40, 23
SAME_TABLES = ("segments", "periods", "basins", "runs", "windows", "dropped", "moments", "stats")


def order_of(kind: str) -> np.ndarray:
    """Return the time number stored at each step; NaN is none."""
    numbers = np.arange(STEPS, dtype=float)
    numbers[GAP_AFTER + 1 :] += 3
    shuffled = np.random.default_rng(3).permutation(numbers)
    return shuffled if kind == "sort" else np.insert(shuffled, [4, 30, 30, 40], [shuffled[20], 7.0, np.nan, 2.0])


def messy_store(path: Path, kind: str, **settings: Any) -> tuple[SyntheticStore, np.ndarray]:
    """Write a store out of order; return it and the stored step of each step, worked out one by one."""
    times = order_of(kind)
    holes = {n: np.random.default_rng(i).random((4, times.size)) < 0.1 for i, n in enumerate(("rain", "flow"))}
    given = {"basins": 4, "variables": ("rain", "flow"), "chunks": (2, 7), "missing": holes, "fill_value": -5.0}
    store = write_store(path, steps=times.size, time_values=times, **{**given, **settings})
    wanted = sorted({t for t in times if not np.isnan(t)})
    return store, np.array([next(i for i, t in enumerate(times) if t == number) for number in wanted])


def clean_store(path: Path, truth: dict[str, np.ndarray], order: np.ndarray) -> SyntheticStore:
    """Write the same record in order, in chunks of its own."""
    names = ("rain", "flow")
    store = write_store(
        path, basins=4, steps=STEPS, gaps={GAP_AFTER: 3}, variables=names, chunks=(4, 9), fill_value=np.nan
    )
    group = zarr.open_group(str(path), mode="r+")
    for name in names:
        group[name][:] = truth[name][:, order]
    return store


def settings_of(store: SyntheticStore, **changes: Any) -> Config:
    section = dataset(
        store, t_range_train=["2000-01-04", "2000-01-30"], t_range_test=["2000-01-31", "2000-02-12"], **changes
    )
    missing = {"missing_policy": "fill_and_mask", "on_bad_chunk": "missing"}
    return config({"a": section}, missing=missing)


def batches(index: Path, split: str, **options: Any) -> list[torch.Tensor]:
    """Return every column of an epoch in order."""
    with (
        headrace.open_index(index) as opened,
        headrace.WindowLoader(opened, split, batch_size=16, shuffle=False, num_workers=2, **options) as loader,
    ):
        served = list(loader)
    return [torch.cat([getattr(b, name) for b in served]) for name in ("x", "y", "basin", "start")]


def by_number(index: Path, split: str) -> list[torch.Tensor]:
    """Return the same columns of all windows, taken by number."""
    with headrace.open_index(index) as opened:
        windows = headrace.WindowDataset(opened, split)
    batch = windows.collate(windows.__getitems__(range(len(windows))))
    return [getattr(batch, name) for name in ("x", "y", "basin", "start")]


@pytest.mark.parametrize("kind", ["sort", "drop_duplicates"])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dims", [("basin", "time"), ("time", "basin")])
def test_index_and_batches_are_those_of_a_store_written_in_order(tmp_path, kind, zarr_format, dims):
    """B8, A14: in both phases, with absent and unreadable chunks."""
    turned = dims[0] == "time"
    chunks, gone, bad = ((7, 2), (1, 0), (3, 1)) if turned else ((2, 7), (0, 1), (1, 3))
    store, order = messy_store(
        tmp_path / "messy.zarr",
        kind,
        zarr_format=zarr_format,
        dims=dims,
        chunks=chunks,
        absent_chunks={"flow": [gone]},
    )
    sep = "." if zarr_format == 2 else "/"
    victim = store.path / "rain" / f"{'' if zarr_format == 2 else 'c/'}{bad[0]}{sep}{bad[1]}"
    victim.write_bytes(b"\xff" * 9)
    truth = {name: values.copy() for name, values in store.truth.items()}
    truth["rain"][2:4, 21:28] = np.nan
    clean = clean_store(tmp_path / "clean.zarr", truth, order)
    messy_index = build_here(settings_of(store, fix_time=kind), tmp_path / "messy")
    clean_index = build_here(settings_of(clean), tmp_path / "clean")
    for name in SAME_TABLES:
        found, expected = (pq.read_table(i / f"{name}.parquet") for i in (messy_index, clean_index))
        if name != "moments":  # its bins follow the chunks
            assert found.equals(expected), name
    assert [r["store_step"] for r in rows(messy_index, "time_order")] == order.tolist()
    assert rows(clean_index, "time_order") == []
    for split in ("train", "test"):
        wanted = batches(clean_index, split)
        ways = (
            batches(messy_index, split),
            batches(messy_index, split, memory_budget=4000),
            by_number(messy_index, split),
        )
        for served in ways:
            pairs = zip(served, wanted, strict=True)
            assert all(torch.equal(a.nan_to_num(nan=-9.0), b.nan_to_num(nan=-9.0)) for a, b in pairs)


def test_chunks_of_a_mended_data_set_are_the_stored_objects(tmp_path):
    store, _ = messy_store(tmp_path / "s.zarr", "drop_duplicates")
    index = build_here(settings_of(store, fix_time="drop_duplicates"), tmp_path / "i")
    found = rows(index, "chunks", variable="flow", basin_chunk=0)
    assert [(r["time_start"], r["time_stop"]) for r in found] == [(t, min(t + 7, 44)) for t in range(0, 44, 7)]
    seen = store.observed["flow"][:2]
    assert [r["valid_count"] for r in found] == [int(seen[:, t : t + 7].sum()) for t in range(0, 44, 7)]


def test_of_equal_times_the_first_stored_is_kept(tmp_path):
    """B8: xarray serves both rows without a word."""
    store = write_store(tmp_path / "s.zarr", basins=1, steps=5, variables=("flow",), time_values=[2, 0, 1, 0, 2])
    section = dataset(
        store,
        fix_time="drop_duplicates",
        t_range_train=["2000-01-01", "2000-01-03"],
        variables={"target": ["flow"], "relevant": {"same": "flow"}},
    )
    settings = config({"a": section}, normalization={"method": "none"})
    x, y, _, start = batches(build_here(settings, tmp_path / "i"), "train")
    assert start.tolist() == [0]
    assert x[0, :, 0].tolist() == store.truth["flow"][0, [1, 2, 0]].tolist()
    assert y[0, :, 0].tolist() == store.truth["flow"][0, [0]].tolist()


def test_summary_says_what_was_mended(tmp_path, monkeypatch):
    store, _ = messy_store(tmp_path / "s.zarr", "drop_duplicates")
    report, _ = build_inline(settings_of(store, fix_time="drop_duplicates"), tmp_path / "i", monkeypatch)
    assert any("fix_time: drop_duplicates; 4 of 44 stored steps left out" in w for w in report.warnings)


def test_sorting_alone_refuses_equal_and_missing_times_by_their_place(tmp_path, monkeypatch):
    """B8."""
    for times, words in (([3, 1, 2, 1], "index 3"), ([2.0, np.nan, 1.0], "index 1")):
        store = write_store(tmp_path / "s.zarr", steps=len(times), time_values=times)
        with pytest.raises(SourceError, match=r"(?s)repeats a time|missing time") as caught:
            build_inline(config({"a": dataset(store, fix_time="sort")}), tmp_path / "i", monkeypatch)
        assert words in str(caught.value)
        assert "fix_time: drop_duplicates" in str(caught.value)


def test_axis_that_is_right_is_scanned_as_if_nothing_was_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 1)
    store = write_store(tmp_path / "s.zarr", steps=40, chunks=(2, 10))
    _, first = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    _, second = build_inline(config({"a": dataset(store, fix_time="sort")}), tmp_path / "i", monkeypatch)
    assert (len(first.keys), second.keys) == (16, [])


def test_other_times_are_another_scan_and_times_that_change_meanwhile_an_error(tmp_path, monkeypatch):
    """F7: a rewritten coordinate must not leave an old order behind."""
    store = write_store(tmp_path / "s.zarr", steps=4, variables=("flow",), time_values=[1, 0, 3, 2])
    section = dataset(store, fix_time="sort", t_range_train=["2000-01-01", "2000-01-04"])
    settings = config({"a": section})
    build_inline(settings, tmp_path / "i", monkeypatch)
    plan = units.plan_scan

    def rewrite(inventory):
        planned = plan(inventory)
        zarr.open_group(str(store.path), mode="r+")["time"][:] = [3, 2, 1, 0]
        return planned

    zarr.open_group(str(store.path), mode="r+")["time"][:] = [0, 2, 1, 3]
    with monkeypatch.context() as patch:
        patch.setattr("headrace.indexer.build.plan_scan", rewrite)
        with pytest.raises(ReadError, match="time coordinate changed while the index was built"):
            build_inline(settings, tmp_path / "i", monkeypatch)
    _, again = build_inline(settings, tmp_path / "i", monkeypatch)
    assert len(again.keys) == 1


@given(st.lists(st.one_of(st.integers(-5, 5).map(float), st.just(float("nan"))), min_size=1, max_size=12))
def test_mending_gives_the_distinct_times_in_order_and_where_each_was_first(times):
    values = np.array(times)
    seconds, order = mended(values, "seconds since 1970-01-01", "standard", "here", "drop_duplicates")
    wanted = sorted({int(t) for t in times if not np.isnan(t)})
    assert seconds.tolist() == wanted
    if order is None:
        assert times == wanted
    else:
        assert order.tolist() == [times.index(t) for t in wanted]
