"""`--seeds` trains the runs that `--seed` would train one by one, and says how far they differ."""

import csv
import os
import signal

import numpy as np
import pytest
import torch

from command_line import run_headrace
from headrace.trainer.loss_meter import LossMeter
from training_jobs import epoch_results, last_weights

SCORES = ("train_loss", "valid_loss", "valid_nse_median")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def interrupt_after(monkeypatch, batches):
    """Send Ctrl-C when so many batches were added up."""
    real, seen = LossMeter.add, []

    def add(self, *arguments):
        real(self, *arguments)
        seen.append(1)
        if len(seen) == batches:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(LossMeter, "add", add)


def test_each_seed_is_a_run_of_its_own_and_the_table_sums_them_up(built, tmp_path, monkeypatch):
    """The second run is interrupted and goes on; seed 3, killed before its first checkpoint, is trained only then."""
    train = ["train", "--index", built / "index", "--run-dir"]
    folder = tmp_path / "three"
    with monkeypatch.context() as patched:
        interrupt_after(patched, 30)  # 10 batches and 2 of validation an epoch
        stopped = run_headrace(*train, folder, "--seeds", "1,2,3")
    assert stopped.code == 130, stopped.err
    assert f"headrace train --resume --run-dir {folder}" in stopped.err
    assert [(folder / f"seed-{seed}").exists() for seed in (1, 2, 3)] == [True, True, False]
    (folder / "seed-3" / "checkpoints").mkdir(parents=True)
    done = run_headrace("train", "--resume", "--run-dir", folder)
    assert done.code == 0, done.err
    for seed in (2, 3):
        alone = tmp_path / f"alone-{seed}"
        assert run_headrace(*train, alone, "--seed", str(seed)).code == 0
        assert epoch_results(folder / f"seed-{seed}") == epoch_results(alone)
        assert torch.equal(last_weights(folder / f"seed-{seed}"), last_weights(alone))

    with (folder / "seeds.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["seed"] for row in rows] == ["1", "2", "3", "mean", "std"]
    best = []
    for row in rows[:3]:
        epochs = epoch_results(folder / f"seed-{row['seed']}")
        best.append(min(epochs, key=lambda epoch: float(epoch["valid_loss"])))
        assert (row["num_epochs"], row["best_epoch"]) == ("2", best[-1]["epoch"])
        assert [row[name] for name in SCORES] == [best[-1][name] for name in SCORES]
    for name in SCORES:
        values = [float(row[name]) for row in best]
        assert float(rows[3][name]) == pytest.approx(np.mean(values))
        assert float(rows[4][name]) == pytest.approx(np.std(values, ddof=1))
    shown = done.out.split("The best epoch of each seed")[1]
    assert f"{float(rows[3]['valid_loss']):.4f}" in shown
    assert f"headrace evaluate {folder / 'seed-3'} --split test" in shown

    whole = run_headrace("evaluate", folder)
    assert whole.code == 2
    assert "the runs of several seeds" in whole.err
    assert str(folder / "seed-2") in whole.err


def test_runs_without_validation_have_no_validation_scores(built, tmp_path):
    folder = tmp_path / "one"
    outcome = run_headrace(
        "train", "--index", built / "index", "--run-dir", folder, "--datasets", "two", "--seeds", "7",
        "--train-epochs", "1",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "validation loss" not in outcome.out
    with (folder / "seeds.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["valid_loss"] for row in rows] == ["", "", ""]
    assert rows[2]["train_loss"] == "", "one value has no spread"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "1,2", "--seed", "3"], "--seed and --seeds both choose the seed"),
        (["--seeds", "1,1"], "a seed is named twice"),
        (["--seeds", "1,x"], "expected whole numbers such as 1,2,3"),
        (["--seeds", ","], "expected whole numbers"),
        (["--resume", "--seeds", "1"], "--resume uses the run's own config.yml"),
    ],
)
def test_seeds_that_cannot_be_are_refused(built, tmp_path, arguments, message):
    outcome = run_headrace("train", "--index", built / "index", "--run-dir", tmp_path / "run", *arguments)
    assert outcome.code == 2
    assert message in " ".join(outcome.err.split())
    assert not (tmp_path / "run").exists()


def test_runs_stopped_before_the_first_checkpoint_leave_no_folder(built, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("headrace.commands.run_training.fit", stop)
    folder = tmp_path / "run"
    assert run_headrace("train", "--index", built / "index", "--run-dir", folder, "--seeds", "1,2").code == 130
    assert not folder.exists()


def test_a_seeds_file_that_cannot_be_read_is_named(built, tmp_path):
    (tmp_path / "seeds.json").write_text("{}")
    outcome = run_headrace("train", "--resume", "--run-dir", tmp_path)
    assert outcome.code == 2
    assert "the seeds of these runs cannot be read" in outcome.err
    assert str(tmp_path / "seeds.json") in outcome.err
