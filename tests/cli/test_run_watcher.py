"""A run says how fast it was and what to change where its model waits; TensorBoard is told where asked for."""

from types import SimpleNamespace

import pytest
import torch

from command_line import run_headrace
from fake_tensorboard import fake_tensorboard, no_tensorboard
from headrace.commands import run_watcher
from headrace.commands.run_watcher import RunWatcher
from headrace.trainer.run_folder import EpochRow, read_csv


def loader(**changes):
    facts = {
        "device": torch.device("cpu"), "num_workers": 2, "resident": True, "bytes_read": 8 * 2**20, "chunks_read": 4,
    }  # fmt: skip
    return SimpleNamespace(**{**facts, **changes})


def row(epoch, wait, compute=1.0):
    return EpochRow(
        epoch=epoch, train_loss=1.0, valid_loss=None, valid_nse_median=None, learning_rate=1e-3, samples_per_second=1.0,
        data_wait_seconds=wait, compute_seconds=compute, gpu_util_percent=None, seconds=1.0,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(run_watcher.os, "cpu_count", lambda: 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "later epochs wait less"),
        ({"num_workers": 1}, "raise --num-workers, 1 of 2"),
        ({"resident": False}, "raise --memory-budget"),
        ({"chunks_read": 4_000}, "store chunks hold 2.0 KiB"),
    ],
)
def test_a_model_that_waits_is_told_what_to_change(changes, words):
    remark = RunWatcher(loader(**changes), None).epoch_done(row(0, wait=1.0))
    assert remark.startswith("Waiting for data took 50% of the epoch: ")
    assert words in remark


def test_processes_of_a_host_are_not_told_to_take_each_others_threads(monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    remark = RunWatcher(loader(num_workers=1, resident=False), None).epoch_done(row(0, wait=1.0))
    assert "raise --memory-budget" in remark


def test_the_same_is_not_said_twice_and_nothing_where_the_loader_keeps_up():
    watcher = RunWatcher(loader(resident=False), None)
    assert watcher.epoch_done(row(0, wait=0.1)) is None
    assert "--memory-budget" in watcher.epoch_done(row(1, wait=2.0))
    assert watcher.epoch_done(row(2, wait=2.0)) is None
    warm = RunWatcher(loader(), None)
    assert "first reading" in warm.epoch_done(row(0, wait=1.0))
    assert "a larger model" in warm.epoch_done(row(1, wait=1.0))


def test_the_cpu_has_no_utilisation_and_a_gpu_may_not_say():
    with RunWatcher(loader(), None).utilization() as seen:
        pass
    assert seen.mean is None


def test_a_run_keeps_its_speed_and_tells_tensorboard(project):
    with fake_tensorboard() as writers:
        done = run_headrace("train", "--index", "index", "--run-dir", "run", "--tensorboard")
    assert done.code == 0, done.err
    rows = read_csv(project / "run" / "metrics.csv")
    [writer] = writers
    assert writer.log_dir == "run/tensorboard"
    assert writer.closed
    assert [(v, s) for tag, v, s in writer.scalars if tag == "loss/train"] == [
        (float(r["train_loss"]), int(r["epoch"])) for r in rows
    ]
    for r in rows:
        assert float(r["samples_per_second"]) > 0
        assert float(r["data_wait_seconds"]) >= 0
        assert float(r["compute_seconds"]) > 0
        assert r["gpu_util_percent"] == ""
    lines = [line for line in done.err.splitlines() if line.startswith("epoch ")]
    assert all("windows/s  waiting " in line for line in lines)
    assert "GPU" not in done.err


def test_without_the_package_nothing_begins(project):
    with no_tensorboard():
        done = run_headrace("train", "--config", "project.yml", "--index", "other", "--run-dir", "run", "--tensorboard")
    assert done.code == 2
    assert "headrace[tensorboard]" in done.err
    assert not (project / "run").exists()
    assert not (project / "other").exists()
