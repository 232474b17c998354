"""The commands of docs/training.md run as they stand."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import run_headrace
from headrace.trainer.checkpoint import load_checkpoint
from tree import REPOSITORY

PAGE = (REPOSITORY / "docs" / "training.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(headrace|torchrun) (.*)$", "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)), re.M)
ALONE = [text for program, text in COMMANDS if program == "headrace"]
TOGETHER = [text for program, text in COMMANDS if program == "torchrun"]


@pytest.fixture
def folder(built, tmp_path, monkeypatch) -> Path:
    """The page's folder: `indexes/camels` is in it."""
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "camels").symlink_to(built / "index")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ALONE)
def test_a_command_of_the_page_trains(folder, command):
    done = run_headrace(*shlex.split(command), "--train-epochs", "1")
    assert done.code == 0, done.err
    assert list(folder.glob("runs/**/checkpoints/best.pt"))


@pytest.mark.slow
@pytest.mark.e2e
def test_torchrun_trains_and_passes_ctrl_c_on(folder):
    """As on the page, with more epochs; Ctrl-C at torchrun ends both processes with a checkpoint."""
    assert all("-m headrace train" in text for text in TOGETHER)
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", *shlex.split(TOGETHER[0]), "--train-epochs",
         "9999"],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        run = folder / "runs" / "both"
        deadline = time.monotonic() + 150
        while not (run / "metrics.csv").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert "on cpu, 2 processes" in said, said
    assert said.count("Go on with: headrace train --resume --run-dir runs/both") == 1, said
    assert load_checkpoint(run / "checkpoints" / "last.pt").epoch > 0
