"""The same LSTM trained with neuralhydrology and with Headrace on the same real basins: test NSE, and seconds.

    python benchmarks/skill.py --data $HEADRACE_DATA --work-dir DIR --json docs/benchmarks/rows.jsonl
    python benchmarks/skill_report.py docs/benchmarks/rows.jsonl --out docs/benchmarks/skill.md

Both sides get the same basins, periods, variables, windows, model and settings, and run one after the other, each in
a process of its own; seconds are those of the process, imports and data preparation included. neuralhydrology reads
NetCDF files, made from the same stores beforehand and not counted.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rivals.environments import search_path
from rows import append, machine
from skill_runs.cases import CASES, Job, Settings

Row = dict[str, Any]


def main() -> None:
    """Train, print a table, write rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the published records and to_zarr.py")
    parser.add_argument("--work-dir", type=Path, required=True, help="takes stores, runs and neuralhydrology")
    parser.add_argument("--case", default=",".join(CASES), help=f"a,b of {', '.join(CASES)}")
    parser.add_argument("--seeds", default="1,2,3", help="one training of each side with each")
    parser.add_argument("--epochs", type=int, default=Settings().epochs)
    parser.add_argument("--constant-rate", action="store_true", help="never lower the learning rate")
    parser.add_argument("--no-clipping", action="store_true", help="take gradients as long as they are")
    parser.add_argument("--note", default="", help="what else went on on the machine; kept in the rows")
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    work_dir = args.work_dir.resolve()
    work_dir.mkdir(parents=True, exist_ok=True)
    settings = asdict(Settings(epochs=args.epochs))
    if args.constant_rate:
        settings["learning_rate_schedule"] = {}
    if args.no_clipping:
        settings["clip_gradient_norm"] = None
    seeds = [int(text) for text in args.seeds.split(",")]
    print(f"both sides: {settings}, load {os.getloadavg()[0]:.1f}")
    for name in args.case.split(","):
        rows: list[Row] = []
        for row in run(name, args.data.resolve(), work_dir, settings, seeds):
            rows.append(row | {"note": args.note} | machine())
            check(rows)
            append(args.json, rows[-1:])


def run(name: str, data: Path, work_dir: Path, settings: dict[str, Any], seeds: list[int]) -> Iterator[Row]:
    """Yield one row per side and seed of a case, as each training ends."""
    case = CASES[name]
    stores = work_dir / "stores"
    if not (stores / f"{case.source}_attributes.zarr").is_dir():
        subprocess.run([sys.executable, str(data / "to_zarr.py"), case.source, "--out", str(stores)], check=True)
    common: dict[str, Any] = {
        "case": name, "stores": str(stores), "netcdf": str(work_dir / "netcdf" / name), "settings": settings,
    }  # fmt: skip
    _ask("neuralhydrology", Job(**common, seed=0, work_dir=str(work_dir)), work_dir, "convert")
    for seed in seeds:
        for side in ("neuralhydrology", "headrace"):
            yield one(side, common, seed, work_dir)


def one(side: str, common: Row, seed: int, work_dir: Path) -> Row:
    """Train once and return the row."""
    folder = work_dir / "trained" / f"{common['case']}_{side}_{seed}_{time.time_ns()}"
    job = Job(**common, seed=seed, work_dir=str(folder))
    load, begun, cpu = os.getloadavg()[0], time.perf_counter(), _cpu_seconds_of_children()
    answer = _ask(side, job, work_dir)
    seconds, cpu_seconds = time.perf_counter() - begun, _cpu_seconds_of_children() - cpu
    uncounted = answer.pop("uncounted", {"seconds": 0.0, "cpu_seconds": 0.0})
    seconds, cpu_seconds = seconds - uncounted["seconds"], cpu_seconds - uncounted["cpu_seconds"]
    median = statistics.median(answer["nse"].values())
    print(
        f"{common['case']:10} {side:16} seed {seed} "
        f"windows {answer['train_windows']:,} NSE median {median:.3f}, {seconds:.1f} s, CPU {cpu_seconds:.1f} s "
        f"(prepare {answer['prepare_seconds']:.1f}, train {answer['train_seconds']:.1f}, "
        f"evaluate {answer['evaluate_seconds']:.1f})",
        flush=True,
    )
    return {
        "benchmark": "skill", "case": common["case"], "side": side, "seed": seed, "nse_median": median,
        "seconds": seconds, "cpu_seconds": cpu_seconds, "load": load, "settings": common["settings"],
    } | answer  # fmt: skip


def _cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check(rows: list[Row]) -> None:
    """Refuse a comparison of unlike things."""
    for name in ("train_windows", "parameters", "steps", "torch_threads"):
        found = {json.dumps(row[name], sort_keys=True) for row in rows}
        if len(found) != 1:
            raise SystemExit(f"the sides differ in {name}: {' '.join(sorted(found))}")


def _ask(side: str, job: Job, work_dir: Path, *arguments: str) -> Row:
    """Run a side's program on one job; return its row, or nothing where it prints none."""
    rival = {"neuralhydrology": "neuralhydrology_training"}.get(side, "")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*search_path(rival, work_dir), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": str(job.settings["torch_threads"]),
    }
    done = subprocess.run(
        [sys.executable, "-m", f"skill_runs.{side}_side", *arguments],
        input=json.dumps(asdict(job)), env=environment, cwd=work_dir, text=True, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{side} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    lines = done.stdout.strip().splitlines()
    return {} if arguments else json.loads(lines[-1])


if __name__ == "__main__":
    main()
