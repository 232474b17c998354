"""`train` says what is wrong before it does any work, with the exit code of its kind, and finds or builds its index."""

import json
import shutil
from pathlib import Path

import pytest

from build_here import build_here
from command_line import CONFIG, run_headrace
from headrace.schemas.config_io import load_config


def edited(folder: Path, old: str, new: str) -> Path:
    """A configuration with one thing changed."""
    assert old in CONFIG
    path = folder / "edited.yml"
    path.write_text(CONFIG.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("warmup_length: 5", "warmup_lenght: 5", 2, ["window.warmup_lenght", "did you mean 'warmup_length'"]),
        ("precipitation: rain", "precipitation: snow", 2, ["snow", "one"]),
        ("one_attributes.zarr\n", "one_attributes.zarr\n    basins: ['01000500', '99']\n", 2, ["99"]),
        ('["2000-04-10", "2000-04-29"]', '["2010-01-01", "2010-12-31"]', 2, ["2010-01-01"]),
        ("one_timeseries.zarr", "none_timeseries.zarr", 3, ["none_timeseries.zarr"]),
    ],
)
def test_bad_input_has_its_exit_code_and_leaves_nothing_behind(project, old, new, code, words):
    outcome = run_headrace("train", "--config", edited(project, old, new), "--run-dir", "run", "--index", "fresh")
    assert outcome.code == code, outcome.err
    assert all(word in outcome.err for word in words), outcome.err
    assert not (project / "run").exists()
    assert not (project / "fresh" / "manifest.json").exists()


def test_a_folder_without_manifest_is_no_index(project):
    (project / "index" / "manifest.json").unlink()
    outcome = run_headrace("train", "--index", "index")
    assert outcome.code == 4
    assert "manifest.json" in outcome.err


def test_a_folder_of_something_else_is_never_built_into(project):
    (project / "photos").mkdir()
    (project / "photos" / "cat.jpg").write_text("meow")
    outcome = run_headrace("train", "--config", "project.yml", "--index", "photos")
    assert outcome.code == 4
    assert [path.name for path in (project / "photos").iterdir()] == ["cat.jpg"]


@pytest.mark.parametrize("command", [("train", "--index"), ("inspect",), ("check", "--index"), ("sql",)])
@pytest.mark.parametrize(("path", "code", "got"), [("nowhere", 3, "nothing there"), ("project.yml", 4, "a file")])
def test_a_path_that_is_no_index_is_said_alike_by_every_command(built, monkeypatch, command, path, code, got):
    monkeypatch.chdir(built)
    outcome = run_headrace(*command, path, *(["select 1"] if command == ("sql",) else []))
    assert outcome.code == code, outcome.err
    assert f"got:      {got}" in outcome.err


def test_a_file_is_no_index_to_build_into(built, monkeypatch):
    monkeypatch.chdir(built)
    outcome = run_headrace("train", "--config", "project.yml", "--index", "project.yml", "--run-dir", "run")
    assert outcome.code == 4
    assert "a file" in outcome.err


def test_an_index_that_is_not_there_needs_a_configuration(project):
    outcome = run_headrace("train", "--index", "elsewhere")
    assert outcome.code == 3
    assert "elsewhere" in outcome.err


def test_neither_configuration_nor_index_is_a_usage_error(project):
    outcome = run_headrace("train")
    assert outcome.code == 2
    assert "--config FILE, --index DIR" in outcome.err


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("physical: flow", "physical: temp", "datasets.one.variables.target.streamflow.physical"),
        ('["2000-04-10", "2000-04-29"]', '["2000-04-10", "2000-04-20"]', "datasets.one.t_range_test"),
        ("two_attributes.zarr\n", "two_attributes.zarr\n    basins: ['21']\n", "datasets.two.basins"),
        ("two_timeseries.zarr", "one_timeseries.zarr", "datasets.two.timeseries"),
        ("  two:\n", "  three:\n", "data sets one, three"),
        ("window:", "missing: {absent_chunk: missing}\nwindow:", "missing.absent_chunk"),
    ],
)
def test_an_index_of_something_else_is_foreign_and_what_differs_is_said(project, old, new, key):
    outcome = run_headrace("train", "--config", edited(project, old, new), "--index", "index", "--run-dir", "run")
    assert outcome.code == 4, outcome.err
    assert "the index is not one of this configuration" in outcome.err
    assert key in outcome.err
    assert "headrace build-index CONFIG --out indexes/" in outcome.err
    assert not (project / "run").exists()


def test_what_needs_no_scan_may_differ_from_the_index(project):
    changed = edited(
        project,
        "window: {hindcast_length: 5, forecast_length: 1, warmup_length: 5}",
        "window: {hindcast_length: 8, forecast_length: 1, warmup_length: 6}\n"
        "missing: {target_nan_policy: keep, missing_policy: fill_and_mask}\n"
        "normalization: {scope: per_basin}\n"
        "sampling: {max_batches_per_epoch: 2}",
    )
    outcome = run_headrace("train", "--config", changed, "--index", "index", "--run-dir", "run", "--train-epochs", "1")
    assert outcome.code == 0, outcome.err


def test_a_validation_period_without_targets_is_found_before_the_first_epoch(project):
    unseen = CONFIG.replace('["2000-03-21", "2000-04-09"]', '["2000-02-11", "2000-02-14"]').replace(
        "one_attributes.zarr\n", "one_attributes.zarr\n    basins: {train: all, valid: ['01002500'], test: all}\n"
    )
    (project / "unseen.yml").write_text(unseen)
    build_here(load_config(project / "unseen.yml"), project / "unseen")
    outcome = run_headrace("train", "--config", "unseen.yml", "--index", "unseen", "--run-dir", "run")
    assert outcome.code == 2, outcome.err
    assert "no target is observed in the split valid" in outcome.err
    assert "datasets.one.t_range_valid" in outcome.err
    assert "epoch" not in outcome.err
    assert not (project / "run").exists()


def test_unknown_data_sets_and_modes_and_devices_are_refused(project):
    for arguments, words in (
        (["--datasets", "one,six"], ["six", "one, two"]),
        (["--sampling", "balanced"], ["balanced_by_dataset"]),
        (["--device", "abacus"], ["abacus"]),
        (["--set", "train.hidden_sise=3"], ["train.hidden_sise", "hidden_size"]),
        (["--batch-size", "0"], ["--batch-size"]),
    ):
        outcome = run_headrace("train", "--index", "index", "--run-dir", "run", *arguments)
        assert outcome.code == 2, outcome.err
        assert all(word in outcome.err for word in words), outcome.err
    assert not (project / "run").exists()


def test_a_missing_gpu_is_said_before_anything_is_built(project, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    outcome = run_headrace("train", "--config", "project.yml", "--index", "fresh", "--device", "cuda")
    assert outcome.code == 2
    assert "no GPU" in outcome.err
    assert not (project / "fresh").exists()


def test_a_run_folder_in_use_is_refused_before_anything_is_built(project):
    (project / "run").mkdir()
    (project / "run" / "notes.txt").write_text("mine")
    outcome = run_headrace("train", "--config", "project.yml", "--index", "fresh", "--run-dir", "run")
    assert outcome.code == 2
    assert "already in use" in outcome.err
    assert not (project / "fresh").exists()


def test_a_changed_store_stops_training_and_names_the_chunk(project):
    (project / "one_timeseries.zarr" / "flow" / "0.0").touch()
    outcome = run_headrace("train", "--index", "index", "--run-dir", "run")
    assert outcome.code == 4
    assert "flow/0.0" in outcome.err


@pytest.mark.slow
def test_the_default_index_is_built_once_and_shared(project):
    for number, extra in enumerate(([], ["--hidden-size", "5", "--set", "window.hindcast_length=7"])):
        outcome = run_headrace("train", "--config", "project.yml", "--train-epochs", "1", *extra)
        assert outcome.code == 0, outcome.err
        assert ("Building the index" in outcome.out) == (number == 0)
    indexes = list((project / "indexes").iterdir())
    assert len(indexes) == 1
    runs = list((project / "runs").iterdir())
    assert len(runs) == 2
    assert all(json.loads((run / "index.json").read_text())["path"] == str(indexes[0]) for run in runs)


@pytest.mark.slow
def test_an_unfinished_build_goes_on(project):
    (project / "index" / "manifest.json").unlink()
    outcome = run_headrace("train", "--config", "project.yml", "--index", "index", "--train-epochs", "1")
    assert outcome.code == 0, outcome.err
    assert "0 units scanned" in " ".join(outcome.out.split())


class TestResume:
    @pytest.fixture
    def run(self, project):
        outcome = run_headrace("train", "--index", "index", "--run-dir", "run", "--train-epochs", "1")
        assert outcome.code == 0, outcome.err
        return project / "run"

    def test_needs_the_folder_of_a_run(self, project):
        assert run_headrace("train", "--resume").code == 2
        outcome = run_headrace("train", "--resume", "--run-dir", "nowhere")
        assert outcome.code == 2
        assert "no run folder" in outcome.err

    @pytest.mark.parametrize(
        "extra", [["--config", "project.yml"], ["--hidden-size", "9"], ["--set", "train.dropout=0"], ["--amp"]]
    )
    def test_takes_no_other_settings(self, run, extra):
        outcome = run_headrace("train", "--resume", "--run-dir", run, *extra)
        assert outcome.code == 2
        assert "its own" in outcome.err or "own config.yml" in outcome.err

    def test_follows_an_index_that_moved(self, project, run):
        shutil.move(project / "index", project / "moved")
        assert run_headrace("train", "--resume", "--run-dir", run).code == 3
        outcome = run_headrace("train", "--resume", "--run-dir", run, "--index", project / "moved")
        assert outcome.code == 0, outcome.err

    def test_refuses_a_configuration_edited_since(self, run):
        config = run / "config.yml"
        config.write_text(config.read_text().replace("hidden_size: 4", "hidden_size: 6"))
        outcome = run_headrace("train", "--resume", "--run-dir", run)
        assert outcome.code == 2
        assert "another configuration" in outcome.err

    def test_says_when_the_run_forgot_its_index(self, run):
        (run / "index.json").unlink()
        outcome = run_headrace("train", "--resume", "--run-dir", run)
        assert outcome.code == 2
        assert "index.json" in outcome.err
