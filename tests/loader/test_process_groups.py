"""Real process groups of 4, 3 and 2 ranks: they agree or fail together, and serve every window once (H1, H8)."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace
from joint_stores import write_joint
from oracle_loader import windows_of
from tree import REPOSITORY

SIZES = (4, 3, 2)
pytestmark = pytest.mark.slow


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run_groups(groups: list[dict[str, Any]], out: Path) -> list[dict[str, Any]]:
    """Run as many ranks as the largest group has, each a process; return each one's answers by case."""
    script = REPOSITORY / "tests" / "support" / "gloo_rank.py"
    ranks = range(max(group["size"] for group in groups))
    process = subprocess.Popen(
        [sys.executable, str(script), json.dumps(groups), str(out)],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        errors = process.communicate(timeout=180)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    return [json.loads((out / f"{rank}.json").read_text(encoding="utf-8")) for rank in ranks]


@pytest.fixture(scope="module")
def answers(index, tmp_path_factory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("groups")
    other = write_joint(folder, window={"hindcast_length": 5, "forecast_length": 1, "warmup_length": 4})
    gone = folder / "gone"
    shutil.copytree(other.index, gone)
    shutil.rmtree(folder / "creek.zarr")  # what the index in `gone` needs and a rank will not find
    whole: dict[str, Any] = {"index": str(index.path), "settings": {"batch_size": 32}, "epochs": 2}
    seeds = {"settings_of": {str(rank): {"seed": rank} for rank in range(4)}}
    cases: dict[int, dict[str, Any]] = {
        4: {
            "seeds": {**whole, **seeds},
            "shared 4": whole,
            "local 4": {**whole, "settings": {"batch_size": 32, "rank_local": True, "memory_budget": 2400}},
        },
        3: {
            "no store": {**whole, "index_of": {"1": str(gone)}},
            "no such data set": {**whole, "settings_of": {"0": {"datasets": ["rivers"]}}},
            "too small": {**whole, "settings_of": {"2": {"memory_budget": 40}}},
            "shared 3": whole,
        },
        2: {
            "indexes": {**whole, "index_of": {"1": str(other.index)}, "settings": {"datasets": ["river"]}},
            "budgets": {**whole, "settings_of": {"0": {"memory_budget": 2400}, "1": {"memory_budget": 5000}}},
        },
    }  # fmt: skip
    ports = free_ports(len(SIZES))
    groups = [{"size": n, "port": port, "cases": cases[n]} for n, port in zip(SIZES, ports, strict=True)]
    return run_groups(groups, folder)


def of_case(answers: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [own[name] for own in answers if name in own]


@pytest.mark.parametrize(("name", "size"), [("shared 4", 4), ("local 4", 4), ("shared 3", 3), ("budgets", 2)])
def test_ranks_serve_every_window_once_in_equal_numbers_of_batches(answers, index, name, size):
    """Field cases H1 and E7: real ranks; with ``rank_local`` each holds a part of the rows only."""
    ranks = of_case(answers, name)
    assert len(ranks) == size
    with headrace.WindowLoader(index, "train", batch_size=64) as whole:
        wanted = sorted(w for batch in whole for w in windows_of(batch))
    for epoch in range(2):
        batches = [own["epochs"][epoch] for own in ranks]
        assert {len(own) for own in batches} == {own["length"] for own in ranks}
        assert sorted(tuple(w) for own in batches for batch in own for w in batch) == wanted
    assert all(own["state"] == ranks[0]["state"] for own in ranks)


def test_the_rounds_of_rank_0_count(answers, index):
    with headrace.WindowLoader(index, "train", memory_budget=2400) as alone:
        assert {own["state"]["round_steps"] for own in of_case(answers, "budgets")} == {
            alone.state_dict()["round_steps"]
        }


@pytest.mark.parametrize(("name", "size"), [("seeds", 4), ("indexes", 2)])
def test_ranks_that_differ_are_refused_on_every_rank(answers, name, size):
    """Field case H8: other seeds, or other indexes, are an error at the start and no hang."""
    errors = [(own["kind"], own["error"]) for own in of_case(answers, name)]
    assert errors == [("ConfigError", "ranks would serve different epochs")] * size


@pytest.mark.parametrize(
    ("name", "failing", "kind", "words"),
    [
        ("no store", 1, "StoreNotFoundError", "store not found"),
        ("no such data set", 0, "ConfigError", "no such data set"),
        ("too small", 2, "ConfigError", "memory_budget is too small"),
    ],
)
def test_a_rank_that_fails_to_start_takes_the_others_with_it(answers, name, failing, kind, words):
    for rank, own in enumerate(of_case(answers, name)):
        assert own["kind"] == kind
        start = "" if rank == failing else f"rank {failing} of 3 failed: {kind}: "
        assert own["error"].startswith(start + words)
