"""The command build-index: teaches, reports, and says what is wrong with the exit code that fits."""

import sys

import pytest

from headrace.cli import build_index_main
from headrace.schemas.config_io import dump_config
from headrace.schemas.manifest import IndexManifest
from indexing import config, dataset, rows
from synthetic import write_store


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run build-index on two small data sets; give the exit code and what it printed."""
    stores = {name: write_store(tmp_path / f"{name}.zarr", zarr_format=f) for name, f in (("one", 2), ("two", 3))}
    (tmp_path / "c.yaml").write_text(dump_config(config({n: dataset(s) for n, s in stores.items()})))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["build-index", *arguments])
        with pytest.raises(SystemExit) as left:
            build_index_main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return run


def test_help_teaches_with_an_example(command):
    code, out, _ = command("--help")
    assert code == 0
    assert "build-index camels.yml --out indexes/camels --workers 8" in out
    assert "Exit codes" in out
    for flag in ("--workers", "--scheduler", "--scheduler-file", "--fresh", "--datasets", "--set", "--source"):
        assert flag in out


def test_build_writes_an_index_and_a_summary(command, tmp_path):
    code, out, err = command("c.yaml", "--out", "i")
    assert code == 0, err
    manifest = IndexManifest.from_json((tmp_path / "i" / "manifest.json").read_text(), "i")
    assert f"index {manifest.index_digest}" in " ".join(out.split())
    assert "scanning 4 of 4 units" in err
    code, out, err = command("c.yaml", "--out", "i")
    assert (code, err) == (0, "")
    assert "0 units scanned, 4 kept" in " ".join(out.split())


def test_data_sets_and_settings_can_be_chosen_on_the_command_line(command, tmp_path):
    code, _, err = command("c.yaml", "--out", "i", "--datasets", "two", "--set", "window.stride=2", "--fresh")
    assert code == 0, err
    assert [r["dataset_id"] for r in rows(tmp_path / "i", "datasets")] == ["two"]
    manifest = IndexManifest.from_json((tmp_path / "i" / "manifest.json").read_text(), "i")
    assert manifest.config.window.stride == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--datasets", "tow"), "did you mean two?"),
        (("--source", "cloud"), "a store does not lie where --source says"),
        (("--set", "window.strid=2"), "did you mean 'stride'?"),
        (("--workers", "1", "--scheduler", "tcp://x:1"), "--workers, --scheduler"),
        (("--workers", "0"), "0 is not in the range x>=1"),
    ],
)
def test_wrong_settings_leave_with_2_and_no_folder(command, tmp_path, arguments, expected):
    code, _, err = command("c.yaml", "--out", "i", *arguments)
    assert code == 2
    assert expected in err
    assert not (tmp_path / "i").exists()


def test_store_that_is_not_there_leaves_with_3(command, tmp_path):
    (tmp_path / "one.zarr").rename(tmp_path / "uno.zarr")
    code, _, err = command("c.yaml", "--out", "i")
    assert code == 3
    assert "store not found" in err
    assert "two.zarr, uno.zarr" in err


LONG = ("--set", "window.hindcast_length=100", "--set", "window.warmup_length=99")


def test_index_without_any_window_is_written_but_leaves_with_2(command, tmp_path):
    """B17: an error only if all data sets are empty, with the counts."""
    code, out, err = command("c.yaml", "--out", "i", *LONG)
    assert code == 2
    assert "the index holds no window" in err
    assert "one train: 60 dropped, two train: 60 dropped" in err
    assert "record too short" in " ".join(out.split())
    assert (tmp_path / "i" / "manifest.json").exists()


def test_one_empty_data_set_among_others_is_a_warning(command):
    """B17."""
    code, out, _ = command("c.yaml", "--out", "i", "--set", "datasets.one.t_range_train=[2000-01-01, 2000-01-01]")
    assert code == 0
    assert "one, train: no window can be served" in " ".join(out.split())
