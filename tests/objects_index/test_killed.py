"""A build at a URL that is killed: what it leaves is no index, its lock holds no one, its parts are kept."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import slow_build
from dask_processes import wait_for_files
from headrace import open_index
from headrace.indexer import build_index, units
from headrace.schemas.config_io import dump_config
from headrace.schemas.errors import ConfigError, IndexFormatError
from indexing import build_inline, config, dataset, table_bytes
from synthetic import write_store

pytestmark = pytest.mark.slow


def test_killed_build_goes_on_where_it_was_at_once(bucket, tmp_path, monkeypatch):
    """F4: kill -9 halfway, while another process is refused; then the same build again."""
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 1)
    monkeypatch.setattr(units, "TASK_UNITS", 2)
    store = write_store(tmp_path / "s.zarr", basins=6, steps=60, chunks=(2, 10))
    settings = config({"a": dataset(store)}, storage=bucket.storage.model_dump())
    (tmp_path / "c.yaml").write_text(dump_config(settings))
    url, there = f"{bucket.url}/i", bucket.path / "i"
    program = [sys.executable, "-P", slow_build.__file__, str(tmp_path / "units.log"), "0.2"]
    with subprocess.Popen(
        [*program, "build-index", str(tmp_path / "c.yaml"), "--out", url],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as build:  # fmt: skip
        try:
            wait_for_files(there / "parts", "*.parquet", 4)
            with pytest.raises(ConfigError, match=f"process {build.pid} on"):
                build_index(settings, url)
        finally:
            os.killpg(build.pid, signal.SIGKILL)
    kept = len(list((there / "parts").glob("*.parquet")))
    assert 4 <= kept < 18
    with pytest.raises(IndexFormatError, match="no finished index"):
        open_index(url, bucket.storage)
    report, _ = build_inline(settings, url, monkeypatch)
    assert report.scan.units_kept == 2 * kept
    build_inline(settings, tmp_path / "undisturbed", monkeypatch)
    assert table_bytes(there) == table_bytes(tmp_path / "undisturbed")
    assert {p.name for p in Path(there, "parts").iterdir()} == {
        p.name for p in (tmp_path / "undisturbed" / "parts").glob("*.parquet")
    }
