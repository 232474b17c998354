"""The examples of docs/data-loader.md and docs/lightning.md run as they are written."""

import multiprocessing
import re
from pathlib import Path
from typing import Any

import pytest

import headrace
from joint_stores import write_joint
from tree import REPOSITORY


def run_example(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the only Python example of a page in a folder with an index, and return its names."""
    (example,) = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs" / page).read_text("utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(example, page, "exec"), names)
    return names


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    return write_joint(tmp_path_factory.mktemp("joint"), normalization={"method": "standard"}).folder


def test_the_data_loader_serves_two_epochs_with_worker_processes(project, monkeypatch, capsys):
    run_example("data-loader.md", project, monkeypatch)
    with headrace.open_index(project / "index") as index:
        total = len(headrace.WindowDataset(index, "train"))
    wanted = [f"epoch {epoch}: {total} of {total} windows in 1 batches" for epoch in (0, 1)]
    assert capsys.readouterr().out.splitlines() == wanted
    assert multiprocessing.active_children() == []


@pytest.mark.filterwarnings("ignore")  # Lightning and what it imports warn of their own affairs
def test_lightning_trains_with_a_window_loader(project, monkeypatch):
    names = run_example("lightning.md", project, monkeypatch)
    trainer, loader = names["trainer"], names["loader"]
    assert (trainer.current_epoch, loader.epoch) == (2, 1)  # it counts batches and never asks for one too many
    assert trainer.global_step == 2 * len(loader)
    assert 0 < float(trainer.callback_metrics["loss"]) < 2
    names["index"].close()
