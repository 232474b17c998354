"""Stores in a bucket give what the same stores give on a disk, and what is wrong with them is said."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr

import headrace
from build_here import build_here
from headrace.objects.counts import RequestCounts, request_counts
from headrace.open_store import open_group
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ReadError, StaleIndexError, StoreNotFoundError
from joint_stores import Joint, write_joint
from s3_server import Bucket

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
