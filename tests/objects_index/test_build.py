"""An index built at an s3:// URL: the bytes of a local one, whatever was killed, changed or left there before."""

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr

from headrace.indexer import build as build_module
from headrace.indexer import build_index, remote_site, units
from headrace.indexer.distribute import run_task
from headrace.objects.counts import request_counts
from headrace.objects.s3_folder import S3Folder
from headrace.schemas.errors import ConfigError, ReadError, StorageError
from indexing import build_inline, config, dataset, table_bytes
from synthetic import write_store


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    """One time chunk per unit, two units per task."""
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 1)
    monkeypatch.setattr(units, "TASK_UNITS", 2)


@pytest.fixture
def store(tmp_path):
    return write_store(tmp_path / "s.zarr", basins=4, steps=40, chunks=(2, 10), variables=("rain", "flow"))


@pytest.fixture
def settings(store, bucket):
    return config({"a": dataset(store)}, storage=bucket.storage.model_dump())


@pytest.fixture
def out(bucket) -> str:
    return f"{bucket.url}/deep/index"


@pytest.fixture
def there(bucket) -> Path:
    """The same as files."""
    return bucket.path / "deep" / "index"


def parts(folder: Path) -> set[str]:
    return {p.name for p in (folder / "parts").iterdir()}


def test_tables_parts_and_manifest_are_those_of_a_local_build(settings, out, there, tmp_path, monkeypatch):
    report, first = build_inline(settings, out, monkeypatch)
    build_inline(settings, tmp_path / "local", monkeypatch)
    assert report.out == out
    assert len(first.keys) == 16
    assert table_bytes(there) == table_bytes(tmp_path / "local")
    assert {p.name for p in there.iterdir()} == {p.name for p in (tmp_path / "local").iterdir()}
    assert parts(there) == parts(tmp_path / "local") - {"lock"}


@pytest.mark.slow
def test_worker_processes_write_their_parts_with_credentials_of_their_own(settings, out, there, tmp_path, monkeypatch):
    report = build_index(settings, out, workers=2)
    build_inline(settings, tmp_path / "local", monkeypatch)
    assert report.scan.units_scanned == 16
    assert table_bytes(there) == table_bytes(tmp_path / "local")


def test_second_build_scans_nothing_and_sends_only_what_is_not_there(settings, out, there, monkeypatch):
    """Who opens the index meanwhile finds its manifest."""
    write = S3Folder.write
    build_inline(settings, out, monkeypatch)
    before, kept = table_bytes(there), parts(there)
    report, second = build_inline(settings, f"{out}/", monkeypatch)
    assert (second.keys, report.scan.units_kept) == ([], 16)
    assert (table_bytes(there), parts(there)) == (before, kept)
    whole = (there / "runs.parquet").read_bytes()
    (there / "runs.parquet").write_bytes(bytes(len(whole)))
    sent = []
    monkeypatch.setattr(S3Folder, "write", lambda folder, name, data: sent.append((name, write(folder, name, data))))
    build_inline(settings, out, monkeypatch)
    assert [name for name, _ in sent if not name.startswith("parts/lock")] == ["runs.parquet"]
    assert (there / "runs.parquet").read_bytes() == whole


def test_changed_chunk_costs_one_unit_and_gives_the_bytes_of_a_fresh_build(
    settings, store, out, there, tmp_path, monkeypatch
):
    build_inline(settings, out, monkeypatch)
    zarr.open_group(str(store.path), mode="r+")["flow"][2:4, 10:19] = np.nan
    os.utime(store.path / "flow" / "1.1", ns=(1, 1))
    _, second = build_inline(settings, out, monkeypatch)
    assert len(second.keys) == 1
    build_inline(settings, tmp_path / "fresh", monkeypatch)
    assert table_bytes(there) == table_bytes(tmp_path / "fresh")
    assert parts(there) == parts(tmp_path / "fresh") - {"lock"}


def test_fresh_scans_everything_again(settings, out, there, monkeypatch):
    build_inline(settings, out, monkeypatch)
    before = table_bytes(there)
    _, second = build_inline(settings, out, monkeypatch, fresh=True)
    assert len(second.keys) == 16
    assert table_bytes(there) == before


def stopped_after(count: int, error: BaseException):
    """Return a stand-in for `run_tasks` that fails after some tasks."""

    def run(tasks, *_, **__):
        for task in tasks[:count]:
            run_task(task)
        raise error

    return run


def test_stopped_build_is_no_index_and_goes_on_where_it_was(settings, out, there, tmp_path, monkeypatch):
    """F4: what a build that ended anyhow leaves is its parts, and the next one scans the others."""
    with monkeypatch.context() as patch:
        patch.setattr(build_module, "run_tasks", stopped_after(3, ReadError("a chunk")))
        with pytest.raises(ReadError, match="a chunk"):
            build_index(settings, out)
    assert [p.name for p in there.iterdir()] == ["parts"]
    assert len(parts(there)) == 3
    report, second = build_inline(settings, out, monkeypatch)
    assert (len(second.keys), report.scan.units_kept) == (10, 6)
    build_inline(settings, tmp_path / "local", monkeypatch)
    assert table_bytes(there) == table_bytes(tmp_path / "local")


def test_interrupted_build_tells_how_many_units_are_kept(settings, out, monkeypatch):
    told = []
    monkeypatch.setattr(build_module, "run_tasks", stopped_after(3, KeyboardInterrupt()))
    monkeypatch.setattr("headrace.indexer.progress.Silent.note", lambda self, text: told.append(text))
    with pytest.raises(KeyboardInterrupt):
        build_index(settings, out)
    assert told == ["stopped: 6 of 16 units are kept; run the same command again to go on"]


@pytest.mark.parametrize("lost", ["runs.parquet", "views.sql", "manifest.json"])
def test_failure_while_sending_leaves_no_index(settings, store, out, there, monkeypatch, lost):
    build_inline(settings, out, monkeypatch)
    before = table_bytes(there)
    send = remote_site.RemoteSite._send

    def fail(site, name):
        if name == lost:
            raise StorageError("the network is gone")
        send(site, name)

    with monkeypatch.context() as patch:
        patch.setattr(remote_site.RemoteSite, "_send", fail)
        with (there / "manifest.json").open("ab") as file:
            file.write(b" ")
        with pytest.raises(StorageError, match="the network is gone"):
            build_inline(settings, out, monkeypatch)
    assert not (there / "manifest.json").exists()
    _, again = build_inline(settings, out, monkeypatch)
    assert (again.keys, table_bytes(there)) == ([], before)


def test_part_that_is_no_part_is_scanned_again(settings, out, there, monkeypatch):
    build_inline(settings, out, monkeypatch)
    before = table_bytes(there)
    victim = min((there / "parts").glob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:100])
    _, second = build_inline(settings, out, monkeypatch)
    assert len(second.keys) == 2
    assert table_bytes(there) == before
    assert pq.read_metadata(victim).num_rows == 2


def test_other_content_is_refused_before_anything_is_written(settings, bucket, monkeypatch):
    place = bucket.path / "thesis"
    (place / "figures").mkdir(parents=True)
    (place / "figures" / "1.png").write_bytes(b"..")
    (place / "chapter1.tex").write_text("...")
    with pytest.raises(ConfigError, match="holds no index") as caught:
        build_inline(settings, f"{bucket.url}/thesis", monkeypatch)
    assert "chapter1.tex, figures" in str(caught.value)
    assert f"{bucket.url}/thesis" in str(caught.value)
    assert sorted(p.name for p in place.rglob("*") if p.is_file()) == ["1.png", "chapter1.tex"]


def test_parts_of_data_sets_left_out_are_removed(settings, store, out, there, monkeypatch):
    both = settings.model_copy(update={"datasets": {**settings.datasets, "b": settings.datasets["a"]}})
    fewer = dataset(store, variables={"target": {"flow": "flow"}})
    build_inline(both, out, monkeypatch)
    assert len(parts(there)) == 8
    only = config({"a": fewer}, storage=settings.storage.model_dump())
    _, second = build_inline(only, out, monkeypatch)
    assert second.keys == []
    assert len(parts(there)) == 4


def test_an_unchanged_build_asks_once_for_each_part_and_sends_no_table(settings, out, monkeypatch):
    build_inline(settings, out, monkeypatch)
    before = request_counts()
    build_inline(settings, out, monkeypatch)
    asked = (request_counts() - before).requests
    num_parts, lists_and_locks = 8, 12
    assert num_parts < asked <= num_parts + lists_and_locks
