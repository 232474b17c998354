"""Several ranks: equal counts, nothing twice, nothing lost; agreed on in a real process group (H1, H8)."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.schemas.errors import ConfigError
from oracle_loader import windows_of
from tree import REPOSITORY


@pytest.mark.parametrize("budget", ["1GiB", 2400])
@pytest.mark.parametrize(("world", "batch_size"), [(2, 5), (3, 64), (4, 1000)])
def test_ranks_share_the_global_batches_of_one_process(index, budget, world, batch_size):
    settings: dict[str, Any] = {"seed": 2, "memory_budget": budget, "num_workers": 1}
    with headrace.WindowLoader(index, "train", batch_size=batch_size * world, **settings) as whole:
        wanted = [windows_of(batch) for batch in whole]
    ranks = []
    for rank in range(world):
        with headrace.WindowLoader(
            index, "train", batch_size=batch_size, rank=rank, world_size=world, **settings
        ) as loader:
            ranks.append([windows_of(batch) for batch in loader])
            assert len(ranks[-1]) == len(loader)
    assert len({len(own) for own in ranks}) == 1
    served = [[w for own in ranks for w in own[number]] for number in range(len(ranks[0]))]
    assert sorted(w for batch in served for w in batch) == sorted(w for batch in wanted for w in batch)
    assert served[:-1] == wanted[: len(served) - 1]


@pytest.mark.parametrize(
    "given", [{"rank": 0}, {"world_size": 2}, {"rank": 2, "world_size": 2}, {"rank": -1, "world_size": 2}]
)
def test_a_rank_outside_its_world_is_refused(index, given):
    with pytest.raises(ConfigError, match="rank"):
        headrace.WindowLoader(index, "train", **given)


def test_fewer_windows_than_ranks_are_refused_at_once(index):
    with pytest.raises(ConfigError, match="fewer windows than ranks"):
        headrace.WindowLoader(index, "train", rank=0, world_size=10_000)


def test_an_automatic_budget_that_ranks_cannot_agree_on_is_refused(index, monkeypatch):
    monkeypatch.setattr("headrace.loader.settings.memory_budget_nbytes", lambda _: 2400)
    with pytest.raises(ConfigError, match="auto differs"):
        headrace.WindowLoader(index, "train", rank=0, world_size=2)
    headrace.WindowLoader(index, "train").close()


def run_group(index_folder: Path, out: Path, settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run as many processes as there are settings, joined by gloo on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = REPOSITORY / "tests" / "support" / "gloo_rank.py"
    group = {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(len(settings)),
        "HEADRACE_TEST_OUT": str(out), "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(index_folder), json.dumps(settings)],
            env={**os.environ, **group, "RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(len(settings))
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * len(settings), "\n".join(errors)
    return [json.loads((out / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(len(settings))]


@pytest.mark.slow
def test_a_real_group_refuses_different_seeds_then_serves_the_rounds_of_rank_0_and_every_window_once(index, tmp_path):
    ranks = run_group(index.path, tmp_path, [{"memory_budget": 2400}, {"memory_budget": 5000}])
    assert [r["error"] for r in ranks] == ["ranks would serve different epochs"] * 2
    with headrace.WindowLoader(index, "train", batch_size=64, memory_budget=2400) as whole:
        wanted = [sorted(w for batch in whole for w in windows_of(batch)) for _ in range(2)]
        assert {r["round_steps"] for r in ranks} == {whole.state_dict()["round_steps"]}
    for epoch in range(2):
        batches = [r["epochs"][epoch] for r in ranks]
        assert len(batches[0]) == len(batches[1])
        assert sorted(tuple(w) for own in batches for batch in own for w in batch) == wanted[epoch]
