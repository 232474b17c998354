"""Every key of the ``loader`` section, set on the command line, reaches the loader and does what it is for."""

import os

import pytest
import torch

import headrace.loader.window_loader as window_loader_module
from command_line import run_headrace
from headrace.commands.loaders import open_loader
from headrace.loader import open_index
from headrace.schemas.config_io import load_config
from headrace.schemas.errors import ConfigError


@pytest.fixture
def opened(built):
    """Open the loader of the train split as a run with these overrides does."""
    loaders = []
    with open_index(built / "index") as index:

        def open_with(*overrides, training=True):
            config = load_config(built / "project.yml", overrides)
            loaders.append(open_loader(index, config, "train", training=training))
            return loaders[-1]

        yield open_with
        for loader in loaders:
            loader.close()


@pytest.fixture
def chosen(monkeypatch):
    """What the loaders asked of the way to the device."""
    asked = []
    real = window_loader_module.choose_transfer

    def choose_transfer(*arguments, **settings):
        asked.append(settings)
        return real(*arguments, **settings)

    monkeypatch.setattr(window_loader_module, "choose_transfer", choose_transfer)
    return asked


def first_starts(loader):
    return next(iter(loader)).start


def test_memory_budget_decides_whether_rows_stay(opened):
    assert opened().resident
    assert not opened("loader.memory_budget=2400").resident


def test_cache_dir_keeps_rows_there(opened, tmp_path):
    assert opened(f"loader.cache_dir={tmp_path}").spill_nbytes > 0
    assert len(list(tmp_path.glob("headrace-*.rows"))) == 1


def test_cache_limit_caps_them(opened, tmp_path):
    with pytest.raises(ConfigError, match=r"cache_limit"):
        opened(f"loader.cache_dir={tmp_path}", "loader.cache_limit=1000")


def test_seed_decides_the_order(opened):
    again, first, other = (first_starts(opened(f"loader.seed={seed}")) for seed in (3, 3, 4))
    assert torch.equal(again, first)
    assert not torch.equal(first, other)


def test_drop_last_leaves_the_rest_out_of_training_alone(opened):
    whole, rest = divmod(opened().num_windows, 32)
    assert rest > 0
    assert len(opened("loader.drop_last=true")) == whole
    assert len(opened("loader.drop_last=true", training=False)) == whole + 1


def test_timeout_workers_and_batch_size_are_the_loaders(opened):
    loader = opened("loader.timeout=7.5", "loader.num_workers=3", "loader.batch_size=7")
    assert (loader.timeout, loader.num_workers) == (7.5, 3)
    assert len(first_starts(loader)) == 7


def test_memory_of_the_device_and_batches_ahead_decide_the_way_there(opened, chosen):
    opened("loader.device_memory_budget=12KiB", "loader.cuda_prefetch_batches=5", "loader.prefetch_factor=3")
    opened("loader.cuda_prefetch=false")
    assert [(a["budget_nbytes"], a["ahead"], a["num_pools"], a["prefetch"]) for a in chosen] == [
        (12 * 1024, 5, 4, True), (None, 2, 2, False),
    ]  # fmt: skip


def test_bench_takes_them_from_its_flags(built, chosen):
    outcome = run_headrace(
        "bench", "--index", built / "index", "--device", "cpu", "--steps", "1", "--json",
        "--cuda-prefetch-batches", "5", "--no-cuda-prefetch", "--prefetch-factor", "2",
        "--set", "loader.device_memory_budget=12KiB",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert [(a["budget_nbytes"], a["ahead"], a["num_pools"], a["prefetch"]) for a in chosen] == [
        (12 * 1024, 5, 3, False),
    ]  # fmt: skip
    assert "stay on the CPU" in outcome.out


@pytest.mark.parametrize(("workers", "number"), [("3", 3), ("auto", os.cpu_count())])
def test_a_cache_per_worker_is_a_budget_for_all(built, tmp_path, workers, number):
    outcome = run_headrace(
        "train", "--index", built / "index", "--run-dir", tmp_path / "run", "--num-workers", workers,
        "--worker-cache-size-mb", "2", "--train-epochs", "1", "--max-batches-per-epoch", "1",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert load_config(tmp_path / "run" / "config.yml").loader.memory_budget == number * 2 * 2**20


def test_a_cache_per_worker_and_a_budget_are_refused_together(built, tmp_path):
    arguments = ("train", "--index", built / "index", "--run-dir", tmp_path / "run", "--worker-cache-size-mb", "1")
    outcome = run_headrace(*arguments, "--memory-budget", "1MiB")
    assert outcome.code == 2
    assert "--memory-budget" in outcome.err
    assert not (tmp_path / "run").exists()
