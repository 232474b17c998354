"""`train` writes a run folder; every flag does what its help says; a stopped run goes on as if nothing had happened."""

import csv
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
import yaml

import headrace.commands.run_training as run_training_module
from command_line import Outcome, run_headrace
from headrace.commands.options import SETTING_FLAGS
from headrace.trainer.checkpoint import load_checkpoint
from headrace.trainer.progress import RichProgress

EPOCH_RESULTS = ("epoch", "train_loss", "valid_loss", "valid_nse_median", "learning_rate")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def loaders(monkeypatch):
    """The loaders that training opened, by split; closed by then, their attributes still tell."""
    opened = {}
    real = run_training_module.open_loader

    def spy(index, config, split, **settings):
        opened[split] = real(index, config, split, **settings)
        return opened[split]

    monkeypatch.setattr(run_training_module, "open_loader", spy)
    return opened


def train(built: Path, run: Path, *arguments: str) -> Outcome:
    sources = ["--config", str(built / "project.yml"), "--index", str(built / "index")]
    outcome = run_headrace("train", *sources, "--run-dir", run, *arguments)
    assert outcome.code == 0, outcome.err
    return outcome


def exposed(loader) -> list[int]:
    return loader.exposure(0).column("served").to_pylist()


def shares(loader) -> list[int]:
    """Windows of an epoch by data set."""
    rows = loader.exposure(0).to_pylist()
    return [sum(r["served"] for r in rows if r["dataset_id"] == name) for name in loader.dataset_ids]


def results(run: Path) -> list[dict[str, str]]:
    """What the epochs came to, without their times."""
    with (run / "metrics.csv").open(newline="") as file:
        return [{name: row[name] for name in EPOCH_RESULTS} for row in csv.DictReader(file)]


def test_a_run_folder_holds_all_that_help_promises(built, tmp_path):
    outcome = train(built, tmp_path / "run")
    names = ("config.yml", "index.json", "metrics.csv", "checkpoints/best.pt", "checkpoints/last.pt", "plots/loss.png")
    assert all((tmp_path / "run" / name).is_file() for name in names)
    assert [row["epoch"] for row in results(tmp_path / "run")] == ["0", "1"]
    assert "Trained 2 epochs" in outcome.out
    assert f"headrace evaluate {tmp_path / 'run'} --split test" in outcome.out
    assert "epoch 1/2" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (["--batch-size", "16"], lambda loader: loader.batch_size == 16),
        (["--num-workers", "2"], lambda loader: loader.num_workers == 2),
        (["--num-workers", "0"], lambda loader: loader.num_workers == 1),
        (["--dataloader-timeout", "7.5"], lambda loader: loader.timeout == 7.5),
        (["--set", "loader.timeout=5", "--dataloader-timeout", "0"], lambda loader: loader.timeout is None),
        (["--prefetch-factor", "3"], lambda loader: loader.serving.num_pools == 4),
        (["--memory-budget", "2400"], lambda loader: not loader.resident),
        (["--dataset-id", "two"], lambda loader: loader.dataset_ids == ["two"]),
        (["--max-batches-per-epoch", "2"], lambda loader: len(loader) == 2),
        (["--normalization", "none"], lambda loader: all((std == 1).all() for std in loader.y_std)),
        (["--normalization-scope", "per_dataset"], lambda loader: loader.y_mean[0][0, 0] != loader.y_mean[1][0, 0]),
        (["--normalization-scope", "global"], lambda loader: loader.y_mean[0][0, 0] == loader.y_mean[1][0, 0]),
        (["--missing-policy", "fill_and_mask"], lambda loader: "precipitation_missing" in loader.x_names),
        (["--datasets", "two"], lambda loader: loader.dataset_ids == ["two"]),
        (["--set", "window.hindcast_length=9"], lambda loader: loader.window.length == 10),
        (
            ["--sampling", "weighted_by_sample"],
            lambda loader: min(exposed(loader)) > 0 and sum(shares(loader)) == loader.num_windows,
        ),
        (["--sampling", "balanced_by_dataset"], lambda loader: abs(shares(loader)[0] - shares(loader)[1]) <= 1),
        (
            ["--sampling", "weighted_by_dataset", "--set", "datasets.two.weight=3"],
            lambda loader: abs(shares(loader)[1] / loader.num_windows - 0.75) < 0.01,
        ),
        (["--set", "sampling.max_windows_per_basin=4"], lambda loader: max(exposed(loader)) == 4),
        (["--set", "loader.batch_size=16", "--batch-size", "8"], lambda loader: loader.batch_size == 8),
    ],
)
def test_a_flag_reaches_the_loader(built, tmp_path, loaders, arguments, seen):
    train(built, tmp_path / "run", "--train-epochs", "1", *arguments)
    assert seen(loaders["train"])


def test_no_reader_thread_is_one_and_said(built, tmp_path):
    assert "one thread of this process reads" in train(built, tmp_path / "run", "--num-workers", "0").out


def test_policies_decide_which_windows_are_trained_on(built, tmp_path, loaders):
    counts = {}
    for name, arguments in {
        "default": [],
        "keep targets": ["--target-nan-policy", "keep"],
        "drop inputs": ["--missing-policy", "drop"],
    }.items():
        train(built, tmp_path / name, "--train-epochs", "1", *arguments)
        counts[name] = loaders["train"].num_windows
    assert counts["keep targets"] == counts["default"] + 5, "five days without streamflow"
    assert counts["drop inputs"] == counts["default"] - 7, "windows of 6 days that touch 2 days without rain"


def test_a_limit_on_training_batches_leaves_validation_whole(built, tmp_path, loaders):
    train(built, tmp_path / "run", "--max-batches-per-epoch", "1", "--batch-size", "8")
    assert len(loaders["train"]) == 1
    assert loaders["valid"].num_windows == 60
    assert len(loaders["valid"]) == 8


def test_flags_shape_the_model_and_its_training(built, tmp_path):
    run = tmp_path / "run"
    train(built, run, "--hidden-size", "7", "--train-epochs", "3", "--device", "cpu")
    assert load_checkpoint(run / "checkpoints" / "last.pt").model_config.hidden_size == 7
    assert len(results(run)) == 3


def test_amp_computes_in_lower_precision(built, tmp_path):
    train(built, tmp_path / "full")
    train(built, tmp_path / "half", "--amp")
    assert results(tmp_path / "full") != results(tmp_path / "half")


def test_a_seed_decides_the_whole_run(built, tmp_path):
    for name, seed in {"first": "3", "again": "3", "other": "4"}.items():
        train(built, tmp_path / name, "--seed", seed)
    assert results(tmp_path / "first") == results(tmp_path / "again")
    assert results(tmp_path / "first") != results(tmp_path / "other")


def test_every_setting_flag_is_recorded_under_the_field_its_help_names(built, tmp_path):
    given = {
        "--batch-size": 16, "--hidden-size": 5, "--train-epochs": 1, "--max-batches-per-epoch": 3, "--seed": 9,
        "--device": "cpu", "--num-workers": 2, "--dataloader-timeout": 30.0, "--sampling": "weighted_by_sample",
        "--normalization": "standard", "--normalization-scope": "per_basin", "--missing-policy": "drop",
        "--target-nan-policy": "drop_all_nan", "--memory-budget": 10**6, "--cuda-prefetch-batches": 5,
        "--prefetch-factor": 2,
    }  # fmt: skip
    train(built, tmp_path / "run", "--no-cuda-prefetch", *(str(part) for pair in given.items() for part in pair))
    given["--cuda-prefetch/--no-cuda-prefetch"] = False
    assert set(given) == {flag.name for flag in SETTING_FLAGS}
    config = yaml.safe_load((tmp_path / "run" / "config.yml").read_text())
    help_text = " ".join(run_headrace("train", "--help").out.split())
    for flag in SETTING_FLAGS:
        section, field = flag.field.split(".")
        assert config[section][field] == given[flag.name], flag.name
        assert f"[{flag.field}]" in help_text


def test_an_index_alone_is_enough_to_train(built, tmp_path):
    outcome = run_headrace("train", "--index", built / "index", "--run-dir", tmp_path / "run", "--train-epochs", "1")
    assert outcome.code == 0, outcome.err
    assert len(results(tmp_path / "run")) == 1


def test_a_run_without_validation_period_chooses_by_training_loss(built, tmp_path, loaders):
    outcome = train(built, tmp_path / "run", "--datasets", "two")
    assert "valid" not in loaders
    assert "training loss" in outcome.out
    assert all(row["valid_loss"] == "" for row in results(tmp_path / "run"))


def interrupt_after(monkeypatch, batches: int) -> None:
    """Send Ctrl-C when so many batches have been reported."""
    real, seen = RichProgress.update, []

    def update(self, done, **values):
        real(self, done, **values)
        seen.append(done)
        if len(seen) == batches:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(RichProgress, "update", update)


@pytest.mark.parametrize("batches", [3, 10, 14])
def test_a_stopped_run_goes_on_to_the_same_result(built, tmp_path, monkeypatch, batches):
    settings = ["--batch-size", "32", "--train-epochs", "3"]
    train(built, tmp_path / "whole", *settings)
    run = tmp_path / "stopped"
    with monkeypatch.context() as patched:
        interrupt_after(patched, batches)
        stopped = run_headrace(
            "train", "--config", built / "project.yml", "--index", built / "index", "--run-dir", run, *settings
        )
    assert stopped.code == 130
    assert f"headrace train --resume --run-dir {run}" in stopped.err
    resumed = run_headrace("train", "--resume", "--run-dir", run)
    assert resumed.code == 0, resumed.err
    assert results(run) == results(tmp_path / "whole")
    one, other = (load_checkpoint(r / "checkpoints" / "best.pt") for r in (run, tmp_path / "whole"))
    assert all(torch.equal(one.model[name], other.model[name]) for name in one.model)


def test_a_run_killed_before_its_first_checkpoint_begins_when_it_is_resumed(built, tmp_path):
    """Even in the middle of writing that checkpoint; with anything of an epoch in it, a run is never begun again."""
    train(built, tmp_path / "whole")
    run = tmp_path / "killed"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / ".last.pt.123.partial").write_bytes(b"half of it")
    for name in ("config.yml", "index.json"):
        shutil.copy(tmp_path / "whole" / name, run / name)
    resumed = run_headrace("train", "--resume", "--run-dir", run)
    assert resumed.code == 0, resumed.err
    assert results(run) == results(tmp_path / "whole")
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["best.pt", "last.pt"]
    (run / "checkpoints" / "last.pt").unlink()
    lost = run_headrace("train", "--resume", "--run-dir", run)
    assert lost.code == 2
    assert "there is no checkpoint" in lost.err
    assert results(run) == results(tmp_path / "whole")


def test_a_store_changed_before_the_first_epoch_leaves_the_run_folder_free(project):
    chunk = project / "two_timeseries.zarr" / "Q" / "c" / "0" / "0"
    kept = chunk.read_bytes()
    chunk.write_bytes(kept + b"x")
    arguments = ("train", "--index", "index", "--run-dir", "run", "--train-epochs", "1")
    assert run_headrace(*arguments).code == 4
    assert not (project / "run").exists()


def test_a_finished_run_resumed_says_so_and_changes_nothing(built, tmp_path):
    train(built, tmp_path / "run")
    before = results(tmp_path / "run")
    outcome = run_headrace("train", "--resume", "--run-dir", tmp_path / "run")
    assert outcome.code == 0, outcome.err
    assert "Trained 2 epochs" in outcome.out
    assert results(tmp_path / "run") == before


def test_a_run_stopped_before_its_first_checkpoint_leaves_no_folder(built, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_training_module, "fit", stop)
    folder = tmp_path / "run"
    assert (
        run_headrace("train", "--config", built / "project.yml", "--index", built / "index", "--run-dir", folder).code
        == 130
    )
    assert not folder.exists()
