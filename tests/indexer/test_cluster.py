"""On a cluster of real processes: the same index, tasks that fit, and words for what workers lack."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import zarr

from dask_processes import address_in, dask_cluster
from headrace.indexer import build_index, distribute, memory, units
from headrace.indexer.memory import WorkerReport, check_reports
from headrace.schemas.errors import ConfigError, SourceError
from indexing import build_inline, config, dataset, table_bytes
from synthetic import write_attributes, write_store
from synthetic_coords import write_ids, write_vector

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scheduler_file(tmp_path_factory):
    """A scheduler with two workers, one of them with little memory."""
    with dask_cluster(tmp_path_factory.mktemp("dask"), workers=((), ("--memory-limit", "500 MB"))) as file:
        yield file


def wide_store(path, megabytes):
    """A store of one chunk of random numbers, which no codec makes smaller."""
    shape = (10, megabytes * 25_000)
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    write_ids(group, "basin", [f"b{i}" for i in range(10)], "str")
    write_vector(group, "time", np.arange(shape[1]), {"units": "hours since 1950-01-01"})
    array = group.create_array("flow", shape=shape, chunks=shape, dtype="f4", fill_value=0)
    array.attrs["_ARRAY_DIMENSIONS"] = ["basin", "time"]
    array[:] = np.random.default_rng(0).random(shape, dtype="f4")
    return {"timeseries": str(path), "t_range_train": ["1950-01-01", "1951-12-31"], "variables": {"target": ["flow"]}}


def settings_of(tmp_path):
    store = write_store(
        tmp_path / "s.zarr",
        basins=6,
        steps=60,
        chunks=(2, 10),
        variables=("rain", "flow"),
        attrs={"flow": {"units": "m3/s"}},
    )
    attributes = write_attributes(tmp_path / "a.zarr", store.basin_ids, {"area": np.arange(1.0, 7.0)}, {"area": "km2"})
    depth = {"physical": "flow", "per_area": "area", "unit": "mm/day"}
    variables = {"relevant": ["rain"], "target": {"flow": depth}, "constant": ["area"]}
    return config({"a": dataset(store, attributes=str(attributes), variables=variables)})


def test_scheduler_by_address_and_by_file_gives_the_bytes_of_one_process(scheduler_file, tmp_path, monkeypatch):
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 1)
    monkeypatch.setattr(units, "TASK_UNITS", 2)
    settings = settings_of(tmp_path)
    build_index(settings, tmp_path / "file", scheduler_file=str(scheduler_file))
    build_index(settings, tmp_path / "address", scheduler=address_in(scheduler_file))
    build_inline(settings, tmp_path / "inline", monkeypatch)
    expected = table_bytes(tmp_path / "inline")
    assert table_bytes(tmp_path / "file") == expected
    assert table_bytes(tmp_path / "address") == expected


def test_tasks_are_locators_and_few_are_under_way_at_once(scheduler_file, tmp_path, monkeypatch):
    """D7, F1, F3: the client sends small tasks without handles, a bounded number ahead."""
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 1)
    monkeypatch.setattr(units, "TASK_UNITS", 1)
    sent, most = [], 0
    original = distribute.Client.submit

    def submit(client, function, task, **options):
        nonlocal most
        future = original(client, function, task, **options)
        sent.append(pickle.dumps((function, task)))
        most = max(most, sum(f.status == "pending" for f in client.futures.values()))
        return future

    monkeypatch.setattr(distribute.Client, "submit", submit)
    store = write_store(tmp_path / "s.zarr", basins=20, steps=60, chunks=(2, 5), fill_value=0.0)
    build_index(config({"a": dataset(store)}), tmp_path / "i", scheduler_file=str(scheduler_file))
    assert len(sent) == 240
    assert max(map(len, sent)) < 2000
    assert not any(name in blob for blob in sent for name in (b"zarr.core", b"zarr.storage", b"headrace.store"))
    assert 0 < most <= 16


def test_task_that_fits_only_alone_waits_for_room_instead_of_being_ended(scheduler_file, tmp_path):
    """F2: on two threads of a small worker only as many tasks run at once as fit."""
    settings = config({name: wide_store(tmp_path / f"{name}.zarr", 30) for name in "abcd"})
    build_index(settings, tmp_path / "i", scheduler_file=str(scheduler_file))
    log = (scheduler_file.parent / "worker.log").read_text()
    assert "paus" not in log.lower()
    assert "exceeded" not in log


def test_chunk_that_no_small_worker_can_hold_is_refused_before_the_scan(scheduler_file, tmp_path):
    """F2: with needed and available bytes."""
    settings = config({"a": wide_store(tmp_path / "s.zarr", 60)})
    with pytest.raises(SourceError, match="largest chunk does not fit into memory") as caught:
        build_index(settings, tmp_path / "i", scheduler_file=str(scheduler_file))
    for part in ("where:    worker tcp://", "bytes for one task", "bytes for tasks", "smaller chunks"):
        assert part in str(caught.value)
    assert not (tmp_path / "i").exists()


def test_tasks_of_a_process_share_its_room_and_a_larger_one_is_refused(monkeypatch):
    """F2: however many threads a worker has."""
    monkeypatch.setattr(memory, "get_worker", lambda: SimpleNamespace(address="tcp://w"))
    monkeypatch.setattr(memory, "_room", lambda worker: 100)
    inside, most = [], []

    def enter(nbytes):
        with memory.gate.entered(nbytes):
            inside.append(nbytes)
            most.append(sum(inside))
            time.sleep(0.002)
            inside.remove(nbytes)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, [60, 50, 40, 30, 100, 1] * 8))
        assert max(most) <= 100
        with pytest.raises(SourceError, match="does not fit into memory"):
            pool.submit(enter, 101).result()


def test_worker_that_its_own_libraries_would_pause_is_refused_instead_of_waited_for(monkeypatch):
    """F2: Dask stops giving such a worker anything to do, and says nothing to the client."""
    monkeypatch.setattr(memory.psutil.Process, "memory_info", lambda self: SimpleNamespace(rss=180_000_000))
    worker = SimpleNamespace(memory_manager=SimpleNamespace(memory_limit=320_000_000))
    found = memory.report([], dask_worker=worker)
    with pytest.raises(SourceError, match="0 bytes for tasks"):
        check_reports({"tcp://small": found}, task_nbytes=1000)


def test_worker_that_does_not_see_the_folders_is_refused_in_words():
    reports = {"tcp://a": WorkerReport(room=None, lacking=()), "tcp://b": WorkerReport(room=9, lacking=("/x/parts",))}
    with pytest.raises(ConfigError, match="worker does not see a folder") as caught:
        check_reports(reports, task_nbytes=1)
    assert "worker tcp://b" in str(caught.value)
    assert "/x/parts" in str(caught.value)


def test_workers_without_headrace_are_refused_in_words(tmp_path, monkeypatch):
    """A worker of another environment cannot import what tasks need."""
    (tmp_path / "headrace").mkdir()
    (tmp_path / "headrace" / "__init__.py").write_text("raise ImportError('another Headrace')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with dask_cluster(tmp_path / "dask", workers=((),)) as file:
        monkeypatch.delenv("PYTHONPATH")
        settings = settings_of(tmp_path)
        with pytest.raises(ConfigError, match="workers cannot run Headrace") as caught:
            build_index(settings, tmp_path / "i", scheduler_file=str(file))
    assert "another Headrace" in str(caught.value)
    assert not (tmp_path / "i").exists()
