"""``headrace check``: what is wrong with a configuration, what changed under an index."""

import os
from pathlib import Path

import numpy as np
import pytest
import zarr

from command_line import run_headrace, write_project


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Return a folder with stores, ``project.yml`` and an index of them."""
    config = write_project(tmp_path)
    assert run_headrace("build-index", config, "--out", tmp_path / "index").code == 0
    return tmp_path


def rewrite(path: Path) -> None:
    """Write a file again with the same bytes, a second later."""
    stat = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))


def test_a_right_configuration_is_said_to_be_right_and_nothing_is_written(tmp_path: Path) -> None:
    config = write_project(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    found = run_headrace("check", config)
    assert found.code == 0
    assert "is right" in found.out
    assert "one" in found.out
    assert "two" in found.out
    assert sorted(tmp_path.rglob("*")) == before


def test_some_data_sets_of_a_configuration_are_checked_alone(tmp_path: Path) -> None:
    config = write_project(tmp_path)
    config.write_text(config.read_text(encoding="utf-8").replace("precipitation: rain", "precipitation: rian"))
    assert run_headrace("check", config, "--datasets", "two").code == 0
    assert run_headrace("check", config, "--datasets", "one").code == 2
    elsewhere = run_headrace("check", config, "--source", "cloud")
    assert elsewhere.code == 2, "the stores are found by ~/hydro_setting.yml then"


def test_everything_wrong_is_listed_at_once(tmp_path: Path) -> None:
    config = write_project(tmp_path)
    text = config.read_text(encoding="utf-8")
    text = text.replace("precipitation: rain", "precipitation: rian").replace("2001-02-20", "2031-02-20")
    config.write_text(text.replace("2001-03-01", "2031-03-01"), encoding="utf-8")
    found = run_headrace("check", config)
    assert found.code == 2
    assert "rian" in found.err
    assert "2031-02-20" in found.err


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        ([], "neither"),
        (["c.yml", "--index", "i"], "CONFIG with --index"),
        (["c.yml", "--verify", "3"], "CONFIG with --verify"),
        (["--index", "i", "--set", "window.stride=2"], "window.stride=2"),
        (["--index", "i", "--dataset-id", "camels_us"], "--dataset-id with --index"),
        (["--source", "cloud"], "--source"),
    ],
)
def test_arguments_that_do_not_go_together_are_named(arguments: list[str], got: str) -> None:
    found = run_headrace("check", *arguments)
    assert found.code == 2
    assert f"got:      {got}\n" in found.err


def test_an_untouched_index_is_up_to_date_also_when_scanned_again(built: Path) -> None:
    found = run_headrace("check", "--index", built / "index", "--verify", "4")
    assert found.code == 0
    assert "4 of 4 scan units" in found.out
    assert "up to date" in found.out


def test_a_rewritten_chunk_is_named_and_only_its_variable_is_stale(built: Path) -> None:
    rewrite(built / "one_timeseries.zarr" / "rain" / "0.1")
    found = run_headrace("check", "--index", built / "index")
    assert found.code == 4
    assert "rain/0.1 was rewritten" in found.err
    assert "temperature" not in found.err
    assert "build-index again" in found.err


def test_a_deleted_chunk_is_named(built: Path) -> None:
    (built / "one_timeseries.zarr" / "temp" / "0.0").unlink()
    found = run_headrace("check", "--index", built / "index")
    assert found.code == 4
    assert "temp/0.0 was deleted" in found.err


def test_building_again_brings_the_index_up_to_date(built: Path) -> None:
    rewrite(built / "one_timeseries.zarr" / "rain" / "0.1")
    assert run_headrace("build-index", built / "project.yml", "--out", built / "index").code == 0
    assert run_headrace("check", "--index", built / "index").code == 0


def test_changed_metadata_stop_a_training_before_it_starts(built: Path) -> None:
    zarr.open_group(built / "one_timeseries.zarr", mode="r+")["rain"].attrs["scale_factor"] = 10.0
    config, index = built / "project.yml", built / "index"
    found = run_headrace("train", "--config", config, "--index", index, "--run-dir", built / "run")
    assert found.code == 4
    assert "attribute scale_factor was not there, is 10.0" in found.err
    assert f"build-index CONFIG --out {index}" in found.err
    assert run_headrace("build-index", config, "--out", index).code == 0
    assert run_headrace("check", "--index", index).code == 0


def test_verify_finds_bytes_that_changed_behind_an_unchanged_size_and_time(tmp_path: Path) -> None:
    """A4: a sample is scanned again and compared."""
    config = write_project(tmp_path)
    store = tmp_path / "one_timeseries.zarr"
    group = zarr.open_group(store, mode="r+")
    values = np.asarray(group["temp"][:])
    attributes = dict(group["temp"].attrs)
    del group["temp"]
    plain = group.create_array("temp", shape=values.shape, chunks=values.shape, dtype=values.dtype, compressors=None)
    plain[:] = values
    plain.attrs.update(attributes)
    assert run_headrace("build-index", config, "--out", tmp_path / "index").code == 0
    chunk = store / "temp" / "0.0"
    stat = chunk.stat()
    plain[:] = values + 1
    os.utime(chunk, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert run_headrace("check", "--index", tmp_path / "index").code == 0
    found = run_headrace("check", "--index", tmp_path / "index", "--verify", "100")
    assert found.code == 4
    assert "another result" in found.err
    assert "array temp" in found.err
    assert "--fresh" in found.err


@pytest.mark.parametrize("arguments", [[], ["project.yml", "--index", "index"], ["project.yml", "--verify", "3"]])
def test_neither_or_both_is_refused(arguments: list[str]) -> None:
    found = run_headrace("check", *arguments)
    assert found.code == 2
    assert "headrace check" in found.err


def test_a_folder_without_manifest_is_no_index(tmp_path: Path) -> None:
    found = run_headrace("check", "--index", tmp_path)
    assert found.code == 4
    assert "manifest.json" in found.err
