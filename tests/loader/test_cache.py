"""Decoded rows that are kept in a folder: read once for all runs, never stale, never too many, never half."""

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import zarr

import headrace
from build_here import build_here
from headrace.loader import rows_file
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError, StaleIndexError
from joint_stores import Joint, write_joint
from oracle_loader import OracleLoader, check_epoch

SMALL = 2400


def serve(joint: Joint, cache: Path | str, oracle: OracleLoader, *, index: Path | None = None, **settings: Any) -> int:
    """Serve an epoch and return how many chunks were read; every window once, with the values of the oracle."""
    given = {"batch_size": 256, "num_workers": 2, "memory_budget": SMALL, **settings}
    with (
        headrace.open_index(index or joint.index) as opened,
        headrace.WindowLoader(opened, "train", cache_dir=str(cache), **given) as loader,
    ):
        check_epoch(list(loader), oracle, loader)
        assert loader.read_amplification == loader.chunks_read / loader.serving.reads.chunks_needed
        return loader.chunks_read


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("headrace-*.rows"), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="module")
def oracle(joint: Joint) -> OracleLoader:
    return OracleLoader(joint.config, "train")


@pytest.fixture
def own(tmp_path: Path) -> Joint:
    return write_joint(tmp_path)


@pytest.mark.parametrize("first", [SMALL, "1GiB"])
def test_a_second_run_reads_no_chunk_whatever_its_settings(joint, tmp_path, first, oracle):
    assert serve(joint, tmp_path, oracle, memory_budget=first) > 0
    others: list[Mapping[str, Any]] = [
        {"memory_budget": 4800, "seed": 7, "num_workers": 1},
        {"memory_budget": "1GiB", "batch_size": 9, "num_workers": 5},
        {"shuffle": False},
    ]
    for settings in others:
        assert serve(joint, tmp_path, oracle, **settings) == 0
    assert len(kept(tmp_path)) == 1


def test_loaders_that_are_open_at_once_read_each_chunk_once_together(joint, tmp_path, oracle):
    read: list[int] = []
    threads = [
        threading.Thread(target=lambda b=b: read.append(serve(joint, tmp_path, oracle, memory_budget=b)))
        for b in (SMALL, SMALL, "1GiB")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with headrace.open_index(joint.index) as index, headrace.WindowLoader(index, "train") as loader:
        assert sum(read) == loader.serving.reads.chunks_needed
    assert len(read) == 3


def test_what_decides_the_values_decides_the_file(own, tmp_path):
    cache, oracle = tmp_path / "cache", OracleLoader(own.config, "train")
    needed = serve(own, cache, oracle)
    assert serve(own, cache, OracleLoader(own.config, "train", datasets=["river"]), datasets=["river"]) > 0
    basins = {"river": own.stores["river"].basin_ids[:2], "creek": own.stores["creek"].basin_ids}
    assert serve(own, cache, OracleLoader(own.config, "train", basins=basins), basins=basins) > 0
    scaled = {"method": "standard", "scope": "per_basin"}
    assert serve(own, cache, OracleLoader(own.config, "train", normalization=scaled), normalization=scaled)
    masked = {"missing_policy": "fill_and_mask"}
    assert serve(own, cache, OracleLoader(own.config, "train", missing=masked), missing=masked) == needed
    data = own.config.as_dict()
    data["datasets"]["river"]["variables"]["target"]["flow"]["offset"] = 3.0
    shifted = parse_config(data)
    again = build_here(shifted, tmp_path / "shifted")
    assert serve(own, cache, OracleLoader(shifted, "train"), index=again) == needed
    assert len(kept(cache)) == 6


def test_a_rewritten_chunk_is_stale_although_no_chunk_need_be_read(own, tmp_path):
    cache, oracle = tmp_path / "cache", OracleLoader(own.config, "train")
    needed = serve(own, cache, oracle)
    zarr.open_group(own.folder / "river.zarr")["rain"][0, 0] = 5.0
    for budget in (SMALL, "1GiB"):
        with pytest.raises(StaleIndexError, match="rain/c/0/0"):
            serve(own, cache, oracle, memory_budget=budget)
    again = build_here(own.config, own.index)
    assert serve(own, cache, OracleLoader(own.config, "train"), index=again) == needed


@pytest.mark.parametrize("damage", ["header", "other key", "cut"])
def test_a_damaged_file_is_made_anew(joint, tmp_path, damage, caplog, oracle):
    needed = serve(joint, tmp_path, oracle)
    path = kept(tmp_path)[0]
    content = path.read_bytes()
    other = content.replace(path.stem.split("-")[1].encode(), b"0" * 32, 1)
    damaged = {
        "header": b"\0" + content[1:],
        "other key": other,
        "cut": content[:-1],
    }
    path.write_bytes(damaged[damage])
    assert serve(joint, tmp_path, oracle) == needed
    assert f"{path} is damaged and made anew" in caplog.text
    assert serve(joint, tmp_path, oracle) == 0


@pytest.mark.parametrize("sealed", [False, True])
def test_after_a_restart_of_the_host_only_rows_written_through_to_disk_count(joint, tmp_path, sealed, oracle):
    needed = serve(joint, tmp_path, oracle)
    path = kept(tmp_path)[0]
    page = path.read_bytes()[:4096]
    header = json.loads(page)
    assert header["sealed"]
    with path.open("r+b") as file:
        file.write(json.dumps(header | {"boot": "an earlier one", "sealed": sealed}).encode().ljust(4096))
    assert serve(joint, tmp_path, oracle) == (0 if sealed else needed)
    assert json.loads(path.read_bytes()[:4096])["sealed"]


def test_rows_whose_writer_was_killed_before_they_were_on_disk_are_written_through_by_the_next(joint, tmp_path, oracle):
    serve(joint, tmp_path, oracle)
    path = kept(tmp_path)[0]
    header = json.loads(path.read_bytes()[:4096])
    with path.open("r+b") as file:
        file.write(json.dumps(header | {"sealed": False}).encode().ljust(4096))
    assert serve(joint, tmp_path, oracle) == 0
    assert json.loads(path.read_bytes()[:4096]) == header


def test_a_file_that_another_host_has_open_is_refused(joint, tmp_path, monkeypatch, oracle):
    with (
        headrace.open_index(joint.index) as index,
        headrace.WindowLoader(index, "train", memory_budget=SMALL, cache_dir=str(tmp_path)),
    ):
        monkeypatch.setattr(rows_file, "_boot", lambda: "of another host")
        with pytest.raises(ConfigError, match="in use on another host"):
            serve(joint, tmp_path, oracle)


def test_unused_files_make_room_least_recently_used_first_and_no_other_file_does(joint, tmp_path, oracle):
    """E11."""
    foreign = {"headrace-notes.rows": b"mine", f"headrace-{'a' * 32}.rows": b"no rows at all", "data.zarr": b"x" * 9}
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)

    def made() -> set[Path]:
        return {path for path in kept(tmp_path) if path.name not in foreign}

    def file_of(*names: str, **settings: Any) -> Path:
        before = made()
        serve(joint, tmp_path, OracleLoader(joint.config, "train", datasets=names), datasets=names, **settings)
        return (made() - before).pop()

    river, creek = file_of("river"), file_of("creek")
    assert serve(joint, tmp_path, OracleLoader(joint.config, "train", datasets=["river"]), datasets=["river"]) == 0
    nbytes = {path: path.stat().st_size for path in (river, creek)}
    serve(joint, tmp_path / "elsewhere", oracle)
    size = kept(tmp_path / "elsewhere")[0].stat().st_size
    both = file_of("river", "creek", cache_limit=nbytes[river] + size)
    assert made() == {river, both}  # the creek alone was not used as lately as the river
    with (
        headrace.open_index(joint.index) as index,
        headrace.WindowLoader(index, "train", memory_budget=SMALL, cache_dir=str(tmp_path), datasets=["river"]),
    ):
        with pytest.raises(ConfigError, match="in use by other loaders"):
            file_of("creek", cache_limit=nbytes[river] + nbytes[creek] - 1)
        assert made() == {river, both}
        os.utime(river, ns=(0, 0))
        assert file_of("creek", cache_limit=nbytes[river] + nbytes[creek]) == creek
        assert made() == {river, creek}
    assert {name: (tmp_path / name).read_bytes() for name in foreign} == foreign


def test_too_low_a_limit_is_refused_with_needed_and_allowed_bytes_before_anything_is_read(joint, tmp_path, oracle):
    """E12."""
    with pytest.raises(ConfigError, match=r"(?s)do not fit loader.cache_limit.*at least .*bytes.*1000 B"):
        serve(joint, tmp_path, oracle, cache_limit=1000)
    assert kept(tmp_path) == []
    with (
        pytest.raises(ConfigError, match=r"(?s)do not fit loader.cache_limit.*1000 B"),
        headrace.open_index(joint.index) as index,
    ):
        headrace.WindowLoader(index, "train", memory_budget=SMALL, cache_limit="1000B")


def test_off_reads_again_as_often_as_was_said(joint, tmp_path, monkeypatch, caplog, oracle):
    monkeypatch.chdir(tmp_path)
    with (
        headrace.open_index(joint.index) as index,
        headrace.WindowLoader(index, "train", batch_size=32, memory_budget=SMALL, cache_dir="off") as loader,
    ):
        check_epoch(list(loader), oracle, loader)
        amplification = loader.read_amplification
        check_epoch(list(loader), oracle, loader)
        assert loader.spill_nbytes == 0
    said = [message for message in caplog.messages if "cache_dir is off" in message]
    assert len(said) == 1
    assert amplification > 1.5
    assert f"reads each chunk {amplification:.1f} times" in said[0]
    assert list(tmp_path.iterdir()) == []
