"""How often an object store is asked: for each chunk once, for each document once, and not at all for what is kept."""

import json
import os
import re
import resource
import warnings
from collections import Counter
from functools import reduce
from operator import getitem

import pytest
import zarr

import headrace
from build_here import build_here
from fault_proxy import FaultProxy
from fault_rules import Rule
from headrace import open_store
from headrace.indexer.check import check_config, check_index
from headrace.objects import limits
from headrace.schemas.errors import StaleIndexError
from indexing import rows, table_bytes

CHUNK = r"zarr/(rain|warmth|flow)/(c/\d/\d|\d\.\d)$"
STORES = ("creek", "creek_attributes", "river", "river_attributes")
OWN = (("creek.zarr", ".zarray"), ("river.zarr", "zarr.json"))
SMALL = 2400
"""A memory budget that holds no split."""


def asked(proxy: FaultProxy) -> Counter[str]:
    """How often each object was asked for, listings by their prefix."""
    return Counter(f"{e.method} {e.key}?{e.query}" for e in proxy.exchanges)


@pytest.fixture
def index(cloud, tmp_path):
    return build_here(cloud.config, tmp_path / "index")


def test_a_build_asks_for_each_chunk_once(proxy, index):
    fetched = [e.key for e in proxy.asked("GET", CHUNK)]
    stored = [row for row in rows(index, "chunks") if row["state"] == "data"]
    assert len(fetched) == len(set(fetched)) == len(stored)
    assert {(e.method, e.range) for e in proxy.exchanges} == {("GET", "")}


def test_a_build_over_what_did_not_change_reads_no_chunk_and_each_document_once(cloud, proxy, index):
    before = table_bytes(index)
    proxy.use()
    build_here(cloud.config, index)
    assert not proxy.asked("GET", CHUNK)
    assert set(asked(proxy).values()) == {1}
    assert table_bytes(index) == before


def test_what_opening_an_index_asked_for_is_known_to_its_loaders_for_a_minute(proxy, index, monkeypatch):
    proxy.use()
    with headrace.open_index(index) as opened:
        assert set(asked(proxy).values()) == {1}
        looked = len(proxy.exchanges)
        proxy.use()
        for _ in range(2):
            headrace.WindowLoader(opened, "train", batch_size=64).close()
        assert proxy.exchanges == []
        monkeypatch.setattr(open_store, "FRESH_SECONDS", 0.0)
        headrace.WindowDataset(opened, "train")
        assert len(proxy.exchanges) >= looked


def test_a_check_asks_all_stores_at_once_and_for_each_document_once(proxy, index):
    proxy.use(Rule(fault="latency", seconds=0.2))
    check_index(index)
    assert set(asked(proxy).values()) == {1}
    keys = [e.key for e in proxy.exchanges]
    firsts = [next(i for i, key in enumerate(keys) if re.search(rf"/{store}.zarr/", key)) for store in STORES]
    values = [i for i, key in enumerate(keys) if re.search(r"/(basin|area|time)/(c/)?0$", key)]
    assert max(firsts) < min(values)
    assert not proxy.asked("GET", CHUNK)


@pytest.mark.parametrize("budget", [SMALL, "1GiB"])
def test_an_epoch_asks_for_the_chunks_it_needs_and_the_next_for_none(proxy, index, budget):
    with (
        headrace.open_index(index) as opened,
        headrace.WindowLoader(opened, "train", batch_size=64, memory_budget=budget) as loader,
    ):
        proxy.use()
        first = sum(len(batch) for batch in loader)
        assert all(e.method == "GET" for e in proxy.exchanges)
        assert len(proxy.exchanges) == len(proxy.asked("GET", CHUNK)) == loader.chunks_read
        assert loader.chunks_read == loader.serving.reads.chunks_needed
        assert set(asked(proxy).values()) == {1}
        proxy.use()
        assert sum(len(batch) for batch in loader) == first
        assert proxy.exchanges == []


def test_rows_kept_in_a_folder_are_asked_for_once_ever(proxy, index, tmp_path):
    needed = []
    for _ in range(2):
        with (
            headrace.open_index(index) as opened,
            headrace.WindowLoader(
                opened, "train", batch_size=64, memory_budget=SMALL, cache_dir=str(tmp_path / "rows")
            ) as loader,
        ):
            proxy.use()
            for _ in range(2):
                assert sum(len(batch) for batch in loader) == loader.num_windows
            needed.append(len(proxy.asked("GET", CHUNK)))
            assert needed[0] == loader.serving.reads.chunks_needed
    assert needed[1] == 0


def test_a_consolidated_copy_is_used_where_it_is_proven_and_a_stale_one_is_not_believed(cloud, proxy, tmp_path):
    """C11: what an array says of itself counts. A listing tells whether the copy says the same."""
    documents = r"/(creek|river).zarr/(basin|time|rain|flow)/(\.zarray|\.zattrs|zarr.json)$"
    single = build_here(cloud.config, tmp_path / "single")
    proxy.use()
    check_config(cloud.config)
    assert len(proxy.asked("GET", documents)) == 12
    for name in ("creek", "river"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # consolidated metadata of format 3 are young
            zarr.consolidate_metadata(str(cloud.folder / f"{name}.zarr"))
    assert table_bytes(build_here(cloud.config, tmp_path / "calm")) == table_bytes(single)
    proxy.use()
    check_config(cloud.config)
    assert not proxy.asked("GET", documents)
    for path, section in (("creek.zarr/.zmetadata", ()), ("river.zarr/zarr.json", ("consolidated_metadata",))):
        content = json.loads((cloud.folder / path).read_text())
        copied = reduce(getitem, (*section, "metadata"), content)
        copied["flow" if section else "flow/.zarray"]["fill_value"] = 5.0
        copied["rain" if section else "rain/.zarray"]["shape"] = [3, 40]
        (cloud.folder / path).write_text(json.dumps(content))
    assert table_bytes(build_here(cloud.config, tmp_path / "stale")) == table_bytes(single)
    proxy.use()
    remarks = check_config(cloud.config).inventory.remarks
    assert sum("consolidated metadata are stale" in remark for remark in remarks) == 2
    assert {e.key.partition("/")[2] for e in proxy.asked("GET", documents)} == {
        f"{a}/{name}/{d}" for a, d in OWN for name in ("rain", "flow")
    }
    zarr.open_group(cloud.folder / "creek.zarr")["flow"].attrs["missing_value"] = 3.0
    with headrace.open_index(tmp_path / "calm") as opened, pytest.raises(StaleIndexError, match="missing_value"):
        headrace.WindowLoader(opened, "train")


def test_requests_under_way_are_as_many_as_are_allowed(cloud, proxy, monkeypatch, tmp_path):
    """D9: the cap is for the process, whatever it does with how many threads."""
    proxy.use(Rule(fault="latency", seconds=0.05))
    config = cloud.reached(concurrency=3).config
    build_here(config, tmp_path / "index")
    assert proxy.most_at_once == 3


def test_open_files_limit_the_requests(monkeypatch, cloud):
    """D9: half of the files that may still be opened."""
    held = len(os.listdir("/proc/self/fd"))  # of tests before this one, among others
    monkeypatch.setattr(resource, "getrlimit", lambda _: (held + 240, 4096))
    assert limits.concurrency(cloud.config.storage) == 64
    wide = cloud.reached(concurrency=500).config.storage
    assert limits.concurrency(wide) == pytest.approx(120, abs=2)
