"""Headrace against what its users have today, on the same store, in the same run, in turn.

Each side is measured in a process of its own, at its defaults and at the best settings of its grid (every setting of
the grid is run once, for a shorter time). A rate is windows served by the seconds since the first one was asked for:
the reading and decoding that Headrace and torchhydro do while they serve counts, loading a store into memory
beforehand does not, and is shown as set-up.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from rivals.measure import Limits, Row, measure, median
from rivals.sides import chosen
from rows import append, machine
from stores import SHAPES, StoreShape, config_text, write_store

import headrace
from headrace.schemas.config_io import parse_config


def main() -> None:
    """Measure one or more stores and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="daily_671", help=f"a,b of {', '.join(SHAPES)}; all for every one")
    parser.add_argument("--sides", help="a,b of programs or beginnings of names; default: every side")
    parser.add_argument("--work-dir", type=Path, required=True, help="takes stores, indexes and the rivals' packages")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--length", type=int, default=365, help="input steps of a window")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0, help="serving of each side and repeat")
    parser.add_argument("--sweep-seconds", type=float, default=5.0, help="serving of each setting of a grid")
    parser.add_argument("--setup-seconds", type=float, default=120.0, help="longest wait for a side's first window")
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    names = list(SHAPES) if args.store == "all" else args.store.split(",")
    for name in names:
        append(args.json, run(SHAPES[name], args))


def run(shape: StoreShape, args: argparse.Namespace) -> list[Row]:
    """Measure the sides on one store; return their rows."""
    work_dir = args.work_dir.resolve()
    work_dir.mkdir(parents=True, exist_ok=True)
    store, index = write_store(shape, work_dir), work_dir / f"{shape.name}.index"
    start = time.perf_counter()
    headrace.build_index(parse_config(config_text(shape, store)), index)
    indexed = time.perf_counter() - start
    unit = shape.step_unit[0].upper().replace("H", "h")
    period = [np.datetime64("1980-01-01T00", "h") + np.timedelta64(step, unit) for step in (0, shape.steps - 1)]
    base = {
        "store": str(store),
        "index": str(index),
        "names": shape.names,
        "basins": shape.basins,
        "steps": shape.steps,
        "basin_ids": [f"{i:08d}" for i in range(shape.basins)],
        "period": [str(time_) for time_ in period],
        "length": args.length,
        "batch_size": args.batch_size,
    }
    limits = Limits(
        seconds=args.seconds,
        sweep_seconds=args.sweep_seconds,
        setup_seconds=args.setup_seconds,
        repeats=args.repeats,
    )
    sides = chosen(args.sides, shape)
    print(f"{shape}\nindex built in {indexed:.1f} s, load {os.getloadavg()[0]:.1f}")
    rows = measure(sides, base, limits, work_dir)
    common = {
        "store": shape.name,
        "batch_size": args.batch_size,
        "length": args.length,
        "index_seconds": indexed,
        "limits": {"seconds": args.seconds, "sweep_seconds": args.sweep_seconds, "setup_seconds": args.setup_seconds},
    }
    rows = [row | common | machine() for row in rows]
    _print(rows)
    return rows


def _print(rows: list[Row]) -> None:
    ours = next((median(r) for r in rows if r["side"] == "Headrace"), None)
    print(f"\n{'side':40} {'settings':18} {'windows/s':>12} {'Headrace is':>12} {'set-up':>8}")
    for row in rows:
        rate = median(row)
        if rate is None:
            print(f"{row['side']:40} {row['role']:18} {row['error']}")
            continue
        times = "" if ours is None else f"{ours / rate:,.2f} x"
        setup = sorted(row["setup_seconds"])[len(row["setup_seconds"]) // 2]
        print(f"{row['side']:40} {row['role']:18} {rate:12,.0f} {times:>12} {setup:6.1f} s")


if __name__ == "__main__":
    main()
