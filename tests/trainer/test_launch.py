"""Who a process is among those that torchrun started, from its environment alone."""

import pytest
import torch

from headrace.commands.loaders import with_fixed_budget
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError
from headrace.trainer import launch
from headrace.trainer.device import choose_device

SECOND_OF_FOUR = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "a"}


@pytest.fixture
def second_of_four(monkeypatch):
    for name, value in SECOND_OF_FOUR.items():
        monkeypatch.setenv(name, value)


def test_without_torchrun_a_process_is_the_only_one(monkeypatch):
    for name in SECOND_OF_FOUR:
        monkeypatch.delenv(name, raising=False)
    assert (launch.world_size(), launch.rank(), launch.is_first()) == (1, 0, True)
    assert (launch.local_rank(), launch.processes_here()) == (None, 1)
    monkeypatch.setenv("WORLD_SIZE", "8")  # some schedulers set this one by itself
    assert (launch.world_size(), launch.is_first()) == (1, True)


def test_torchrun_says_who_it_is(second_of_four):
    assert (launch.world_size(), launch.rank(), launch.is_first()) == (8, 5, False)
    assert (launch.local_rank(), launch.processes_here()) == (1, 4)


def test_processes_of_a_host_share_its_free_memory(second_of_four, monkeypatch):
    monkeypatch.setattr("headrace.commands.loaders.memory_budget_nbytes", lambda value: 4000 if value == "auto" else 7)
    config = parse_config({"datasets": {"a": {"timeseries": "a.zarr"}}})
    assert with_fixed_budget(config).loader.memory_budget == 1000
    given = parse_config({"datasets": {"a": {"timeseries": "a.zarr"}}}, overrides=["loader.memory_budget=7"])
    assert with_fixed_budget(given).loader.memory_budget == 7, "what was given is per process"


def test_each_process_takes_its_own_gpu(second_of_four, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda", 1)
    with pytest.raises(ConfigError, match=r"(?s)would compute on one GPU.*CUDA_VISIBLE_DEVICES"):
        choose_device("cuda:0")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(ConfigError, match=r"(?s)more processes on this host than GPUs.*smaller --nproc-per-node"):
        choose_device("auto")
