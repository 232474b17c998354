"""Headrace's side: ``build-index``, ``train`` and ``evaluate``, as the commands do it, on the CPU.

A program: one job as JSON on standard input, one row as the last line of standard output.
"""

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import yaml
from skill_runs.cases import Job, headrace_config


def train(job: Job) -> dict[str, Any]:
    """Build the index, train and evaluate; return the seconds of each stage, windows, and NSE per basin."""
    from headrace.cli import headrace

    folder = Path(job.work_dir)
    folder.mkdir(parents=True, exist_ok=True)
    config, index, run = folder / "config.yml", folder / "index", folder / "run"
    config.write_text(yaml.safe_dump(headrace_config(job), sort_keys=False), encoding="utf-8")
    started, imported = time.time() - psutil.Process().create_time(), time.perf_counter()
    headrace(["build-index", str(config), "--out", str(index)], standalone_mode=False)
    prepared = time.perf_counter()
    headrace(["train", "--config", str(config), "--index", str(index), "--run-dir", str(run)], standalone_mode=False)
    trained = time.perf_counter()
    headrace(["evaluate", str(run), "--split", "test", "--checkpoint", "last"], standalone_mode=False)
    evaluated, cpu = time.perf_counter(), time.process_time()
    # From here on nothing is measured.
    with (run / "evaluation" / "test" / "metrics.csv").open(encoding="utf-8", newline="") as file:
        basins = [row for row in csv.DictReader(file) if row["scope"] == "basin"]
    row = {
        "import_seconds": started,
        "prepare_seconds": prepared - imported,
        "train_seconds": trained - prepared,
        "evaluate_seconds": evaluated - trained,
        "nse": {row["basin_id"]: float(row["nse"]) for row in basins},
        "steps": {row["basin_id"]: int(row["count"]) for row in basins},
    } | _afterwards(config, index, run)
    uncounted = {"seconds": time.perf_counter() - evaluated, "cpu_seconds": time.process_time() - cpu}
    return row | {"uncounted": uncounted}


def _afterwards(config: Path, index: Path, run: Path) -> dict[str, Any]:
    """Return windows and parameters."""
    import torch

    from headrace.commands.loaders import open_loader
    from headrace.loader import open_index
    from headrace.schemas.config_io import load_config
    from headrace.trainer.checkpoint import load_model

    model, _ = load_model(run / "checkpoints" / "last.pt", torch.device("cpu"))
    with open_index(index) as opened, open_loader(opened, load_config(config), "train", training=True) as loader:
        return {
            "torch_threads": torch.get_num_threads(),
            "train_windows": loader.num_windows,
            "parameters": sum(p.numel() for p in model.parameters()),
        }


def main() -> None:
    """Train."""
    print("\n" + json.dumps(train(Job(**json.load(sys.stdin)))))


if __name__ == "__main__":
    main()
