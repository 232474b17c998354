"""Large things in small memory: shards, many tiny chunks, hundreds of millions of windows."""

import tracemalloc

import numpy as np
import pytest
import zarr

import headrace
from build_here import build_here
from headrace.indexer import report as report_module
from headrace.indexer.distribute import ScanTask
from headrace.indexer.read_unit import scan_unit
from headrace.loader.layout import lay_out
from headrace.loader.windows import Windows
from headrace.schemas.intervals import Intervals
from headrace.schemas.storage_config import StorageConfig
from headrace.schemas.windows import TimeRange, WindowSpec, find_windows
from indexing import build_inline, config, dataset
from synthetic import write_store

BLOCKS = 12 << 20
"""Values decoded at once, with their temporaries."""


@pytest.mark.parametrize(
    "layout",
    [
        {"zarr_format": 2, "chunks": (50, 4000)},
        {"zarr_format": 3, "chunks": (50, 4000)},
        {"zarr_format": 3, "chunks": (5, 500), "shards": (50, 4000)},
        {"zarr_format": 3, "chunks": (500, 5), "shards": (4000, 50), "dims": ("time", "basin")},
        {"zarr_format": 2, "chunks": (50, 40)},
    ],
    ids=["v2", "v3", "sharded", "sharded, time first", "many chunks"],
)
def test_scan_stays_within_the_memory_that_was_predicted(tmp_path, monkeypatch, layout):
    """C5, F2: bytes that NumPy and zarr take, of random numbers that no codec makes smaller."""
    store = write_store(tmp_path / "s.zarr", basins=50, steps=4000, variables=("flow",), dtype="float64", **layout)
    array = zarr.open_group(str(store.path), mode="r+")["flow"]
    array[:] = np.random.default_rng(0).random(array.shape)
    _, scanned = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    (unit,) = scanned.tasks[0].units
    task = ScanTask(units=(unit,), folder="", policy="error", storage=StorageConfig())
    assert unit.nbytes == 50 * 4000 * 8
    tracemalloc.start()
    try:
        scan_unit(unit, "error", StorageConfig())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= task.peak_nbytes + BLOCKS


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_many_tiny_chunks_are_few_tasks_and_are_named(tmp_path, monkeypatch, zarr_format):
    """C7, C8: no task or graph entry for each of them."""
    monkeypatch.setattr(report_module, "MANY_CHUNKS", 300)
    store = write_store(
        tmp_path / "s.zarr", basins=20, steps=20, variables=("flow",), chunks=(1, 1), zarr_format=zarr_format
    )
    report, scanned = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert (len(scanned.tasks), len(scanned.keys)) == (1, 20)
    assert any("a, flow: 400 stored chunks of 4 bytes" in note for note in report.notes)


@pytest.mark.parametrize("consolidated", [False, True])
def test_metadata_come_from_the_arrays_even_where_a_copy_is_stale(tmp_path, consolidated):
    """C11: an append that leaves the consolidated copy as it was."""
    store = write_store(tmp_path / "s.zarr", basins=2, steps=20, chunks=(2, 10), consolidated=consolidated)
    group = zarr.open_group(str(store.path), mode="r+", use_consolidated=False)
    for name in (*store.variables, "time"):
        array = group[name]
        array.resize((30,) if name == "time" else (2, 30))
        if name == "time":
            array[20:30] = np.arange(20, 30)
        else:
            array[:, 20:30] = np.tile(np.arange(20, 30), (2, 1))
    section = dataset(store, t_range_train=["2000-01-21", "2000-01-30"])
    index = build_here(config({"a": section}, normalization={"method": "none"}), tmp_path / "i")
    with (
        headrace.open_index(index) as opened,
        headrace.WindowLoader(opened, "train", shuffle=False, num_workers=1) as loader,
    ):
        last = list(loader)[-1]
    assert last.y[-1].flatten().tolist() == [29.0]


def test_hundreds_of_millions_of_windows_are_a_few_runs():
    """C13, C14: 2,000 basins × 100,000 steps, no object for each window."""
    basins, steps = 2000, 100_000
    rows = np.arange(basins)
    whole = Intervals(row=rows, start=np.zeros(basins, np.int64), stop=np.full(basins, steps, np.int64))
    tracemalloc.start()
    try:
        found = find_windows(
            spec=WindowSpec(hindcast_length=365, forecast_length=0, warmup_length=364, stride=1),
            period=TimeRange(start=0, stop=steps),
            segments=[TimeRange(start=0, stop=steps)],
            basins=rows.astype(np.int32),
            num_basins=basins,
            targets=[whole],
            inputs=[whole],
            target_policy="drop_any_nan",
        ).runs
        windows = Windows(
            dataset=np.zeros(basins, np.int16),
            basin=found.basin,
            start=found.start,
            stop=found.stop,
            num_windows=found.num_windows,
            stride=1,
        )
        layout = lay_out(windows, 365)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert int(found.num_windows.sum()) == basins * (steps - 364) > 1.9e8
    assert (len(found.basin), layout.num_slots) == (basins, basins)
    assert peak < 4 << 20
