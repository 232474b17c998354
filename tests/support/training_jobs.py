"""Run ``train`` in processes of its own, and read what they left behind."""

import contextlib
import csv
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from command_line import Outcome
from headrace.trainer.checkpoint import load_checkpoint
from tree import REPOSITORY

EPOCH_RESULTS = ("epoch", "train_loss", "valid_loss", "valid_nse_median", "learning_rate")
"""Columns of ``metrics.csv`` that do not hold times."""


@dataclass(frozen=True)
class Finished:
    """What the processes of all jobs said, by job and rank; a killed one said nothing."""

    outcomes: dict[str, list[Outcome]]


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run_jobs(jobs: list[dict[str, Any]], out: Path) -> Finished:
    """Run jobs of ``train_processes.py`` one after the other."""
    for job in jobs:
        job["port"] = free_port()
    script = REPOSITORY / "tests" / "support" / "train_processes.py"
    process = subprocess.Popen(
        [sys.executable, str(script), json.dumps(jobs), str(out)],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        errors = process.communicate(timeout=480)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    outcomes: dict[str, list[Outcome]] = {}
    for job in jobs:
        files = [out / f"{job['name']}.{rank}.json" for rank in range(job.get("ranks", 1))]
        outcomes[job["name"]] = [Outcome(**json.loads(f.read_text(encoding="utf-8"))) for f in files if f.exists()]
    return Finished(outcomes)


def epoch_results(run: Path) -> list[dict[str, str]]:
    """Return what a run's epochs came to, without their times."""
    with (run / "metrics.csv").open(newline="", encoding="utf-8") as file:
        return [{name: row[name] for name in EPOCH_RESULTS} for row in csv.DictReader(file)]


def last_weights(run: Path) -> torch.Tensor:
    """Return all weights of a run's last checkpoint in one row."""
    model = load_checkpoint(run / "checkpoints" / "last.pt").model
    return torch.cat([model[name].flatten() for name in sorted(model)])
