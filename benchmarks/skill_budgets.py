"""Test NSE against memory for decoded data: one LSTM on 49 real daily basins of eleven sources, on the CPU.

    python benchmarks/skill_budgets.py --data $HEADRACE_DATA --work-dir DIR --json docs/benchmarks/rows.jsonl
    python benchmarks/skill_report.py docs/benchmarks/rows.jsonl --out docs/benchmarks/skill.md

Every seed trains with every budget, a share of the decoded training split, so that budgets are compared seed by seed;
0 stands for a split that stays in memory. Trainings that the file of rows has already are passed over.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import yaml
from rows import append, machine
from skill_runs.joint import SOURCES, joint_config, write_statics

from headrace.cli import headrace
from headrace.commands.loaders import open_loader
from headrace.loader import open_index
from headrace.loader.shuffle_quality import measure_quality
from headrace.schemas.config_io import load_config
from headrace.trainer.checkpoint import load_model
from headrace.trainer.metrics import StreamingMetrics

Row = dict[str, Any]
SHARES = (0.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)


def main() -> None:
    """Train, print a line per training, write rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the published records and to_zarr.py")
    parser.add_argument("--work-dir", type=Path, required=True, help="takes stores, the index and runs")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), help="of the decoded split; 0: all of it")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--length", type=int, default=90, help="days of a window")
    parser.add_argument("--stride", type=int, default=4, help="days between the starts of windows")
    parser.add_argument("--hidden-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--constant-rate", action="store_true", help="never lower the learning rate")
    parser.add_argument("--note", default="", help="what else went on on the machine; kept in the rows")
    parser.add_argument("--json", type=Path, required=True, help="append result rows to this file")
    args = parser.parse_args()
    settings = {
        "length": args.length, "stride": args.stride, "batch_size": 256, "hidden_size": args.hidden_size,
        "train_epochs": args.epochs, "learning_rate": 5e-3,
        "learning_rate_decay": "none" if args.constant_rate else "cosine", "dropout": 0.2, "loss": "nse",
    }  # fmt: skip
    work_dir = args.work_dir.resolve()
    prepare(args.data.resolve(), work_dir / "stores")
    for seed in (int(text) for text in args.seeds.split(",")):
        for share in (float(text) for text in args.shares.split(",")):
            if not known(args.json, settings, seed, share):
                append(args.json, [train(work_dir, settings, seed, share) | {"note": args.note} | machine()])


def prepare(data: Path, stores: Path) -> None:
    """Make the stores that are not there yet."""
    for name in sorted({source.store for source in SOURCES.values()}):
        if not (stores / f"{name}_timeseries.zarr").is_dir():
            subprocess.run([sys.executable, str(data / "to_zarr.py"), name, "--out", str(stores)], check=True)
    if not (stores / "joint_attributes.zarr").is_dir():
        write_statics(stores)


def known(rows: Path, settings: Row, seed: int, share: float) -> bool:
    """Return whether a row of this training is there."""
    lines = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
    wanted = ("skill_budgets", settings, seed, share)
    return any(
        tuple(row.get(n) for n in ("benchmark", "settings", "seed", "budget_share")) == wanted
        for row in map(json.loads, lines)
    )


def train(work_dir: Path, settings: Row, seed: int, share: float) -> Row:
    """Train once, evaluate on the test periods, return the row."""
    folder = work_dir / "trained" / f"{seed}_{share:.4f}_{time.time_ns()}"
    config, index, run = folder / "config.yml", work_dir / "index", folder / "run"
    folder.mkdir(parents=True)
    loader: Row = {"batch_size": settings["batch_size"], "seed": seed, "num_workers": 1}
    chosen = {name: settings[name] for name in ("length", "stride")}
    rest = {name: value for name, value in settings.items() if name not in (*chosen, "batch_size")}

    def write() -> None:
        asked = joint_config(work_dir / "stores", chosen | {"loader": loader, "train": rest | {"device": "cpu"}})
        config.write_text(yaml.safe_dump(asked, sort_keys=False), encoding="utf-8")

    write()
    if not index.is_dir():
        headrace(["build-index", str(config), "--out", str(index)], standalone_mode=False)
    if share:
        loader["memory_budget"] = int(share * facts(config, index)["decoded_nbytes"])
        write()
    load, begun, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    headrace(["train", "--config", str(config), "--index", str(index), "--run-dir", str(run)], standalone_mode=False)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu
    nse = test_nse(config, index, run)
    median = statistics.median(nse.values())
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        losses = [float(row["train_loss"]) for row in csv.DictReader(file)]
    row = {
        "benchmark": "skill_budgets", "settings": settings, "seed": seed, "budget_share": share,
        "memory_budget": loader.get("memory_budget"), "nse": nse, "nse_median": median, "train_loss": losses,
        "seconds": seconds, "cpu_seconds": cpu_seconds, "load": load,
    } | facts(config, index)  # fmt: skip
    print(f"ROW seed {seed} share {share:.4f} NSE {median:.4f} loss {losses} CPU {cpu_seconds:.0f} s, {seconds:.0f} s")
    sys.stdout.flush()
    return row


def test_nse(config: Path, index: Path, run: Path) -> dict[str, float]:
    """Return the NSE of every basin on the test years; unlike ``evaluate`` this leaves no predictions and pictures."""
    model, _ = load_model(run / "checkpoints" / "last.pt")
    with (
        open_index(index) as opened,
        open_loader(opened, load_config(config), "test") as loader,
        torch.inference_mode(),
    ):
        metrics = StreamingMetrics(loader.dataset_ids, loader.basin_ids, loader.y_names)
        for batch in loader:
            observed, simulated = (
                loader.denormalize(values, batch)[:, 0].numpy()
                for values in (batch.y[:, -1:], model(batch.x, batch.static, 1))
            )
            metrics.update(batch.dataset.numpy(), batch.basin.numpy(), observed, simulated)
        ids = [basin for basins in loader.basin_ids for basin in basins]
        return dict(zip(ids, metrics.basin_nse()[:, 0].tolist(), strict=True))


def facts(config: Path, index: Path) -> Row:
    """Return sizes of the split and of its rounds, and how batches are mixed."""
    with open_index(index) as opened, open_loader(opened, load_config(config), "train", training=True) as loader:
        serving, plan = loader.serving, loader.plan()
        layout = serving.shape.layout
        return {
            "basins": layout.num_slots, "train_windows": loader.num_windows, "decoded_rows": layout.num_rows,
            "decoded_nbytes": layout.num_rows * serving.row_nbytes, "round_rows": serving.round_steps,
            "tiles": int(serving.tiles.slot.size), "tile_rows": int(serving.tiles.num_rows.max()),
            "tiles_a_round": float(serving.tiles.slot.size / plan.num_rounds),
            "quality": measure_quality(loader).as_dict(),
        }  # fmt: skip


if __name__ == "__main__":
    main()
