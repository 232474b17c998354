"""What goes wrong under a loader: said with place and cause, in the consumer, and never as wrong values or a hang."""

import itertools
import logging
import os
import shutil
import tempfile
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numba.core import event

import headrace
from build_here import build_here
from headrace.schemas.errors import ConfigError, ReadError, SourceError, StaleIndexError
from headrace.store import StoredArray
from joint_stores import Joint, write_joint

CHUNK = Path("river.zarr/rain/c/0/0")
BUDGETS = ["1GiB", 2400]


@pytest.fixture
def own(tmp_path: Path) -> Joint:
    return write_joint(tmp_path)


def serve(joint: Joint, **settings: Any) -> int:
    with (
        headrace.open_index(joint.index) as index,
        headrace.WindowLoader(index, "train", **{"batch_size": 32, "num_workers": 2, **settings}) as loader,
    ):
        return sum(len(batch) for batch in loader)


def with_old_times(path: Path, content: bytes) -> None:
    stat = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_rewritten_chunk_makes_the_index_stale_and_is_named(own, budget):
    zarr.open_group(own.folder / "river.zarr")["rain"][0, 0] = 5.0
    with pytest.raises(StaleIndexError, match=f"{CHUNK}\n.*size:mtime"):
        serve(own, memory_budget=budget)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_deleted_chunk_makes_the_index_stale_and_is_named(own, budget):
    (own.folder / CHUNK).unlink()
    with pytest.raises(StaleIndexError, match=f"(?s){CHUNK}.*absent"):
        serve(own, memory_budget=budget)


def test_a_chunk_written_where_none_was_makes_the_index_stale(own):
    content = (own.folder / CHUNK).read_bytes()
    (own.folder / CHUNK).unlink()
    index_folder = build_here(own.config, own.folder / "index_without_the_chunk")
    (own.folder / CHUNK).write_bytes(content)
    with pytest.raises(StaleIndexError, match=f"(?s){CHUNK}.*expected: size:mtime absent"):
        serve(replace(own, index=index_folder))


def test_an_array_that_is_gone_makes_the_index_stale(own):
    del zarr.open_group(own.folder / "river.zarr")["warmth"]
    with pytest.raises(StaleIndexError, match="array is gone"):
        serve(own)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_broken_chunk_of_unchanged_size_and_time_is_a_read_error_with_its_cause(own, budget):
    path = own.folder / CHUNK
    with_old_times(path, b"\xff" * path.stat().st_size)
    with pytest.raises(ReadError, match=r"(?s)rain/c/0/0 \(\d+ bytes\)") as caught:
        serve(own, memory_budget=budget)
    assert caught.value.__cause__ is not None


def test_a_store_that_is_gone_is_a_source_error_before_anything_is_read(own):
    shutil.move(own.folder / "river.zarr", own.folder / "brook.zarr")
    with pytest.raises(SourceError, match=r"(?s)store not found.*brook.zarr"):
        serve(own)
    assert serve(own, datasets=["creek"]) > 0


def test_a_store_that_goes_while_it_is_read_is_no_zero(own):
    with headrace.open_index(own.index) as index, headrace.WindowLoader(index, "train", batch_size=4) as loader:
        shutil.rmtree(own.folder / "river.zarr")
        with pytest.raises(StaleIndexError, match="absent"):
            list(loader)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_read_that_failed_is_tried_again_on_the_next_pass(own, budget):
    path = own.folder / CHUNK
    content = path.read_bytes()
    with (
        headrace.open_index(own.index) as index,
        headrace.WindowLoader(index, "train", batch_size=32, memory_budget=budget) as loader,
    ):
        with_old_times(path, b"\xff" * len(content))
        with pytest.raises(ReadError):
            list(loader)
        with_old_times(path, content)
        assert sum(len(batch) for batch in loader) == loader.num_windows


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_read_that_fails_after_its_pass_has_ended_is_tried_again(own, budget, monkeypatch):
    read, calls, later = StoredArray.read, itertools.count(), threading.Event()

    def fail_twice(array: StoredArray, *place: Any) -> Any:
        number = next(calls)
        if number == 1:
            later.wait(5)
        if number < 2:
            raise OSError(f"failure {number}")
        return read(array, *place)

    monkeypatch.setattr(StoredArray, "read", fail_twice)
    with (
        headrace.open_index(own.index) as index,
        headrace.WindowLoader(index, "train", batch_size=32, memory_budget=budget, num_workers=2) as loader,
    ):
        with pytest.raises(OSError, match=r"failure [01]"):  # 1 where the read that is waited for began second
            list(loader)
        timer = threading.Timer(0.2, later.set)
        timer.start()
        assert sum(len(batch) for batch in loader) == loader.num_windows
        timer.join()


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_chunk_that_is_rewritten_while_it_is_read_makes_the_index_stale(own, budget, monkeypatch):
    read = StoredArray.read

    def rewrite(array: StoredArray, *place: Any) -> Any:
        values = read(array, *place)
        if array.name == "rain" and "river" in array.uri:
            with_old_times(own.folder / CHUNK, (own.folder / CHUNK).read_bytes() + b"\0")
        return values

    monkeypatch.setattr(StoredArray, "read", rewrite)
    with pytest.raises(StaleIndexError, match=f"{CHUNK}\n.*size:mtime"):
        serve(own, memory_budget=budget)


@pytest.mark.parametrize("served", [1, 2])
def test_only_rounds_that_are_served_are_read_ahead(index, served, monkeypatch):
    with headrace.WindowLoader(index, "train") as loader:
        engine, plan = loader._engine, loader.plan()
        assert engine is not None
        assert plan.num_rounds > served
        start, started = engine.reader.start, []
        monkeypatch.setattr(engine.reader, "start", lambda numbers: started.append(numbers) or start(numbers))
        engine.rounds.open(range(served))
        engine.rounds.prepare(plan, 0, Future())
        assert len(started) == served


@pytest.mark.parametrize("budget", BUDGETS)
def test_any_error_in_a_reader_reaches_the_consumer_as_it_is(own, budget, monkeypatch):
    def fail(*_: Any) -> None:
        raise MemoryError("no room for this chunk")

    monkeypatch.setattr(StoredArray, "read", fail)
    with pytest.raises(MemoryError, match="no room"):
        serve(own, memory_budget=budget)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_read_that_hangs_is_an_error_once_the_timeout_is_over(own, budget, workers, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(StoredArray, "read", lambda *_: release.wait() and np.zeros((0, 0)))
    with headrace.open_index(own.index) as index:
        loader = headrace.WindowLoader(index, "train", timeout=0.2, memory_budget=budget, num_workers=workers)
        try:
            with pytest.raises(ReadError, match=r"(?s)no batch in time.*0.2 s"):
                list(loader)
            loader.close()  # leaves the thread that hangs to itself
        finally:
            release.set()


def test_the_timeout_does_not_count_what_compiling_takes(own, monkeypatch):
    read = StoredArray.read
    first = itertools.count()

    def compiling(array: StoredArray, *place: Any) -> Any:
        if next(first) == 0:
            with event.trigger_event("numba:compiler_lock"):
                time.sleep(0.9)
        return read(array, *place)

    monkeypatch.setattr(StoredArray, "read", compiling)
    assert serve(own, timeout=0.4) > 0


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_rank_that_skips_a_round_does_not_wait_for_it_beyond_the_timeout(own, budget, monkeypatch):
    release = threading.Event()
    read = StoredArray.read

    def slow(array: StoredArray, *place: Any) -> Any:
        if "creek" in array.uri:
            release.wait()
        return read(array, *place)

    monkeypatch.setattr(StoredArray, "read", slow)
    with headrace.open_index(own.index) as index:
        loader = headrace.WindowLoader(
            index, "train", timeout=0.2, memory_budget=budget, batch_size=100, rank=1, world_size=4, shuffle=False
        )
        try:
            with pytest.raises(ReadError, match="no batch in time"):
                list(loader)
            loader.close()
        finally:
            release.set()


def test_a_spill_folder_that_takes_no_files_is_refused_with_the_space_needed(own, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"(?s)cannot be spilled.*\d KiB of space.*Not a directory|File exists"):
        serve(own, memory_budget=2400, cache_dir=str(tmp_path / "file"))


@pytest.mark.parametrize("kept", [False, True])
def test_a_full_spill_disk_is_refused_with_needed_and_free_bytes(own, tmp_path, monkeypatch, kept):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ConfigError, match=r"(?s)cannot be spilled.*bytes\) of space.*free"):
        serve(own, memory_budget=2400, cache_dir=str(spill) if kept else None)
    assert [path.name for path in spill.iterdir()] == ["headrace.lock"] * kept


def test_private_rows_leave_no_file_behind_even_while_they_are_used(own, tmp_path, monkeypatch, caplog):
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    with (
        caplog.at_level(logging.INFO, "headrace"),
        headrace.open_index(own.index) as index,
        headrace.WindowLoader(index, "train", memory_budget=2400) as loader,
    ):
        assert any("take" in message and "KiB" in message for message in caplog.messages)
        list(loader)
        assert loader.spill_nbytes > 0
        assert list((tmp_path / "spill").iterdir()) == []


@pytest.mark.parametrize("budget", [0, 1, 160])
def test_too_small_a_budget_is_refused_with_the_least_that_does(own, budget):
    with pytest.raises(ConfigError, match=r"(?s)memory_budget is too small.*at least 168 bytes"):
        serve(own, memory_budget=budget)
    assert serve(own, memory_budget=168) == serve(own)
