"""Who computes which part leaves no trace: threads, processes, a running cluster."""

import contextlib
import os
import socket

import pytest
from distributed import LocalCluster

from headrace.indexer import build_index, units
from headrace.indexer.cluster import Workers, connected, slots_for
from headrace.schemas.errors import ConfigError, ReadError, SourceError
from indexing import config, dataset, table_bytes
from synthetic import write_store

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 1)
    monkeypatch.setattr(units, "TASK_UNITS", 2)


@pytest.fixture
def settings(tmp_path):
    """Two data sets of different step, one of them sharded and stored time first."""
    daily = write_store(tmp_path / "d.zarr", basins=6, steps=60, chunks=(2, 10), missing={"streamflow": some_missing})
    hourly = write_store(
        tmp_path / "h.zarr",
        basins=4,
        steps=80,
        zarr_format=3,
        dims=("time", "basin"),
        chunks=(5, 2),
        shards=(20, 2),
        step_seconds=3600,
        time_unit="hours",
    )
    return config({"daily": dataset(daily), "hourly": dataset(hourly)})


def some_missing(basins, steps):
    return [[(b * 7 + t * 3) % 11 == 0 for t in range(steps)] for b in range(basins)]


def test_threads_processes_and_a_running_cluster_give_the_same_bytes(settings, tmp_path):
    build_index(settings, tmp_path / "threads")
    build_index(settings, tmp_path / "processes", workers=2)
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as cluster:
        build_index(settings, tmp_path / "cluster", scheduler=cluster.scheduler_address)
    expected = table_bytes(tmp_path / "threads")
    assert table_bytes(tmp_path / "processes") == expected
    assert table_bytes(tmp_path / "cluster") == expected


@pytest.mark.parametrize("workers", [None, 1])
def test_error_of_a_worker_names_the_chunk_and_leaves_no_index(tmp_path, workers, capfd):
    store = write_store(tmp_path / "s.zarr", basins=2, steps=30, chunks=(2, 10), zarr_format=3)
    victim = store.path / "streamflow" / "c" / "0" / "1"
    victim.write_bytes(victim.read_bytes()[:7])
    with pytest.raises(ReadError, match="chunk cannot be decoded") as caught:
        build_index(config({"a": dataset(store)}), tmp_path / "i", workers=workers)
    assert "streamflow/c/0/1 (7 bytes)" in str(caught.value)
    assert caught.value.__cause__ is not None
    assert not (tmp_path / "i" / "manifest.json").exists()
    assert capfd.readouterr().err == ""


def test_unreachable_schedulers_are_configuration_errors(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.indexer.cluster._CONNECT_SECONDS", 1)
    for options in (
        {"scheduler": "tcp://127.0.0.1:9"},
        {"scheduler": "nonsense"},
        {"scheduler": "tpc://127.0.0.1:9"},
        {"scheduler_file": str(tmp_path / "none.json")},
    ):
        with pytest.raises(ConfigError, match="scheduler cannot be reached") as caught:
            build_index(settings, tmp_path / "i", **options)
        assert next(iter(options.values())) in str(caught.value)
        assert not (tmp_path / "i").exists()


def test_scheduler_without_workers_is_a_configuration_error(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.indexer.cluster._WORKER_SECONDS", 1)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0", protocol="tcp") as cluster:
        with pytest.raises(ConfigError, match="scheduler has no workers") as caught:
            build_index(settings, tmp_path / "i", scheduler=cluster.scheduler_address)
        assert cluster.scheduler_address in str(caught.value)


def test_two_builds_at_once_do_not_fight_over_a_port(settings, tmp_path):
    """Dask's dashboard has a fixed port; a second cluster on the machine would warn, and a warning fails here."""
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # somebody else holds it: just as well
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        build_index(settings, tmp_path / "i")


def test_two_ways_to_run_are_refused():
    with pytest.raises(ConfigError, match="--workers, --scheduler"):
        Workers(processes=2, scheduler="tcp://localhost:8786")
    with pytest.raises(ConfigError, match="1 or more"):
        Workers(processes=0)


def test_memory_of_tasks_bounds_how_many_run_at_once():
    """F2: predicted before the start, and refused in words when one task alone does not fit."""
    assert slots_for(Workers(processes=8), task_nbytes=100, free_nbytes=500) == 3
    assert slots_for(Workers(processes=2), task_nbytes=100, free_nbytes=10**9) == 2
    with pytest.raises(SourceError, match="does not fit into memory") as caught:
        slots_for(Workers(processes=2), task_nbytes=100, free_nbytes=99)
    assert "smaller chunks" in str(caught.value)


def test_workers_are_started_by_spawn():
    """E1: no fork after the stores were opened."""
    import dask

    assert dask.config.get("distributed.worker.multiprocessing-method") == "spawn"
    assert os.name == "posix"


def test_waits_that_end_unheard_when_a_loop_stops_are_not_told_of(caplog):
    with connected(Workers(), task_nbytes=1) as client:
        loop = client.loop.asyncio_loop
        assert client.cluster.loop is client.loop
    for error in (TimeoutError("Timeout"), ValueError("something else")):
        loop.create_future().set_exception(error)
    assert "something else" in caplog.text
    assert "Timeout" not in caplog.text
