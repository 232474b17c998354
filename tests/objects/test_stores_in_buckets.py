"""Stores in a bucket give what the same stores give on a disk, and what is wrong with them is said."""

import asyncio
import gc
import pickle
import re
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest

import headrace
from build_here import build_here
from headrace.indexer.inventory import take_inventory
from headrace.objects import client as client_module
from headrace.objects.bucket import StoredObject
from headrace.objects.client import S3Client
from headrace.objects.counts import RequestCounts, request_counts
from headrace.objects.zarr_store import _heard
from headrace.open_store import open_group
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError, SourceError, StaleIndexError, StorageError, StoreNotFoundError
from indexing import table_bytes
from joint_stores import Joint, write_joint
from s3_server import SECRET, Bucket

LOCATORS = {"timeseries_uri", "attributes_uri", "fingerprint", "objects", "stored_in"}


@dataclass
class Both:
    """The same stores on a disk and in a bucket, with an index each."""

    local: Joint
    bucket: Bucket
    remote_config: Config
    remote_index: Path


@pytest.fixture
def both(bucket: Bucket, tmp_path: Path) -> Both:
    local = write_joint(tmp_path / "joint")
    for folder in sorted(local.folder.glob("*.zarr")):
        bucket.upload(folder, f"stores/{folder.name}")
    settings = in_bucket(local.config, local.folder, bucket)
    return Both(local, bucket, settings, build_here(settings, tmp_path / "remote"))


def in_bucket(config: Config, folder: Path, bucket: Bucket, **storage: Any) -> Config:
    data = config.as_dict()
    for settings in data["datasets"].values():
        for key in ("timeseries", "attributes"):
            settings[key] = settings[key].replace(str(folder), f"{bucket.url}/stores")
    data["storage"] = bucket.server.storage(**storage).model_dump()
    return parse_config(data)


def batches(index: Path, **options: Any) -> list[dict[str, np.ndarray]]:
    with (
        headrace.open_index(index) as opened,
        headrace.WindowLoader(opened, "train", batch_size=64, **options) as loader,
    ):
        return [{n: getattr(b, n).numpy().copy() for n in ("x", "y", "static", "basin", "start")} for b in loader]


def test_index_of_a_bucket_equals_that_of_a_disk_but_for_locators(both: Both):
    for file in sorted(both.local.index.glob("*.parquet")):
        there = pq.read_table(both.remote_index / file.name)
        here = pq.read_table(file)
        kept = [name for name in here.column_names if name not in LOCATORS]
        assert repr(here.select(kept).to_pylist()) == repr(there.select(kept).to_pylist()), file.name  # NaN is NaN


@pytest.mark.parametrize("budget", ["1GiB", "12KiB"])
def test_batches_from_a_bucket_equal_those_from_a_disk(both: Both, budget: str):
    here, there = (batches(i, memory_budget=budget) for i in (both.local.index, both.remote_index))
    assert len(here) == len(there) > 0
    for a, b in zip(here, there, strict=True):
        for name, values in a.items():
            np.testing.assert_array_equal(values, b[name], err_msg=name)


def test_an_epoch_asks_for_each_stored_chunk_once(both: Both):
    with headrace.open_index(both.remote_index) as index, headrace.WindowLoader(index, "train") as loader:
        before = request_counts()
        list(loader)
        asked = request_counts() - before
        assert asked == RequestCounts(requests=loader.chunks_read, nbytes=loader.bytes_read)
        list(loader)
        assert request_counts() - before == asked


def test_a_chunk_put_again_makes_the_index_stale(both: Both):
    chunk = both.bucket.path / "stores/river.zarr/rain/c/0/1"
    chunk.write_bytes(chunk.read_bytes()[::-1])  # of the same size, so that its etag alone tells
    with pytest.raises(StaleIndexError, match=r"(?s)stores/river\.zarr/rain/c/0/1\n.*size:etag \d+:\w+"):
        batches(both.remote_index)


def test_a_chunk_that_is_gone_makes_the_index_stale_and_is_never_filled(both: Both):
    (both.bucket.path / "stores/creek.zarr/flow/0.1").unlink()
    with pytest.raises(StaleIndexError, match=r"(?s)creek\.zarr/flow/0\.1\n.*got: +size:etag absent"):
        batches(both.remote_index)


def test_a_chunk_of_an_attribute_that_is_listed_and_then_not_there_is_no_fill_value(both: Both):
    get = S3Client.get

    def losing(client: S3Client, key: str) -> Any:
        return None if re.search(r"_attributes\.zarr/(?!basin)\w+/\d", key) else get(client, key)

    with (
        mock.patch.object(S3Client, "get", losing),
        pytest.raises(SourceError, match=r"chunk changed while it was read\n.*_attributes\.zarr"),
    ):
        take_inventory(both.remote_config)


def test_what_changed_is_scanned_again_and_nothing_else(both: Both, tmp_path: Path):
    (both.bucket.path / "stores/creek.zarr/flow/0.1").unlink()
    first = request_counts()
    build_here(both.remote_config, both.remote_index)
    second = request_counts()
    build_here(both.remote_config, tmp_path / "fresh")
    part, whole = second - first, request_counts() - second
    assert part.requests < whole.requests
    assert part.nbytes < whole.nbytes
    assert table_bytes(tmp_path / "fresh") == table_bytes(both.remote_index)


@pytest.mark.slow
def test_worker_processes_find_credentials_for_themselves_and_tell_what_they_asked(both: Both, tmp_path: Path):
    """D7."""
    before = request_counts()
    report = headrace.build_index(both.remote_config, tmp_path / "workers", workers=2)
    assert table_bytes(tmp_path / "workers") == table_bytes(both.remote_index)
    assert report.scan.requests == request_counts() - before
    stored = [f for name in ("river", "creek") for f in (both.bucket.path / f"stores/{name}.zarr").rglob("*")]
    chunks = [f for f in stored if f.is_file() and f.parent.name not in {"basin", "time"} and f.suffix != ".json"]
    assert report.scan.requests.nbytes > sum(f.stat().st_size for f in chunks if not f.name.startswith("."))


def test_a_store_that_is_not_there_is_said_with_what_is_beside_it(both: Both):
    """D10, D11."""
    url = f"{both.bucket.url}/stores"
    with pytest.raises(StoreNotFoundError, match=r"beside it are: creek\.zarr, creek_attributes\.zarr, river\.zarr"):
        open_group(f"{url}/rivr.zarr", both.bucket.storage)
    with pytest.raises(StoreNotFoundError, match="a folder without group metadata"):
        open_group(url, both.bucket.storage)
    with pytest.raises(StoreNotFoundError, match="an array, not a group"):
        open_group(f"{url}/river.zarr/rain", both.bucket.storage)
    with pytest.raises(StoreNotFoundError, match="no folder elsewhere"):
        open_group(f"{both.bucket.url}/elsewhere/river.zarr", both.bucket.storage)


def test_an_open_group_asks_for_each_document_once(both: Both):
    group = open_group(f"{both.bucket.url}/stores/river.zarr", both.bucket.storage)
    before = request_counts()
    for _ in range(3):
        assert group["rain"].shape == (5, 120)
    assert (request_counts() - before).requests == 1


def test_a_group_that_crosses_processes_carries_no_secret(both: Both):
    """D7."""
    group = open_group(f"{both.bucket.url}/stores/river.zarr", both.bucket.storage)
    group["rain"][:]
    packed = pickle.dumps(group)
    assert SECRET.encode() not in packed
    np.testing.assert_array_equal(pickle.loads(packed)["rain"][:], group["rain"][:])


def test_an_index_and_its_loader_ask_for_each_document_once(both: Both):
    asked: list[str] = []
    get = S3Client.get

    def counted(client: S3Client, key: str) -> Any:
        asked.append(key)
        return get(client, key)

    with mock.patch.object(S3Client, "get", counted), headrace.open_index(both.remote_index) as index:
        headrace.WindowLoader(index, "train").close()
    assert len(asked) == len(set(asked)) > 20


def test_an_index_on_a_disk_answers_without_credentials_for_its_stores(both: Both, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    client_module._client.cache_clear()
    with headrace.open_index(both.remote_index) as index:
        assert index.windows("train").num_rows > 0
        with pytest.raises(ConfigError, match="no credentials"):
            headrace.WindowLoader(index, "train")


def test_a_fault_that_nobody_waits_for_is_not_told_by_the_event_loop():
    """Nor where the loop ends, with the process, in the moment in which the fault comes."""
    loop = asyncio.new_event_loop()
    told: list[Any] = []
    loop.set_exception_handler(lambda _, context: told.append(context))

    def ask() -> None:
        asked: Future[StoredObject | None] = Future()
        _heard(asked)
        asked.set_exception(StorageError("refused"))
        loop.call_soon(loop.stop)

    loop.call_soon(ask)
    loop.run_forever()
    loop.close()
    gc.collect()
    assert told == []
    later: Future[StoredObject | None] = Future()

    async def leave() -> None:
        _heard(later)

    asyncio.run(leave())
    later.set_result(None)  # nobody is there to be told
