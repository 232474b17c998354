"""An epoch of WindowLoader against the bare gather it rests on.

Bare: ``torch.index_select(out=)`` of the same windows from a pool of the same size, rows known beforehand, on one
thread, and on two. The sides alternate; the table shows medians and their ratios.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import torch
from rows import append, machine
from stores import SHAPES, StoreShape, config_text, write_store

import headrace
from headrace.schemas.config_io import parse_config


def main() -> None:
    """Run the sides in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=list(SHAPES), default="daily_671")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--length", type=int, default=365, help="input steps of a window")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--windows", type=int, default=2_000_000, help="windows of a bare gather and repeat")
    parser.add_argument("--work-dir", type=Path, help="where stores and indexes lie (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        rows = measure(SHAPES[args.store], args, args.work_dir or Path(temporary))
    append(args.json, rows)


def measure(shape: StoreShape, args: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    """Return one row per side."""
    folder.mkdir(parents=True, exist_ok=True)
    store, out = write_store(shape, folder), folder / f"{shape.name}.index"
    headrace.build_index(parse_config(config_text(shape, store)), out)
    index = headrace.open_index(out)
    window = {"hindcast_length": args.length - 1, "forecast_length": 1, "warmup_length": args.length - 1}
    decoded = shape.basins * shape.steps * shape.variables * 4

    def loader(budget: int) -> headrace.WindowLoader:
        return headrace.WindowLoader(index, "train", batch_size=args.batch_size, window=window, memory_budget=budget)

    rooms = loader(2 * decoded)
    for _ in rooms:
        pass
    sides: dict[str, Callable[[], float]] = {
        "bare gather, 1 thread": lambda: bare(shape, args, 1),
        "bare gather, 2 threads": lambda: bare(shape, args, 2),
        "resident epoch": lambda: epoch(rooms),
        "first epoch, reading and decoding": lambda: fresh_epoch(loader, 2 * decoded),
        "first epoch, budget 1/8 of the decoded split": lambda: fresh_epoch(loader, decoded // 8),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(args.repeats):
        for name, run in sides.items():
            rates[name].append(run())
    rooms.close()
    return report(shape, args, rates)


def epoch(loader: headrace.WindowLoader) -> float:
    """Return windows per second of one epoch."""
    start, served = time.perf_counter(), 0
    for batch in loader:
        served += len(batch)
    return served / (time.perf_counter() - start)


def fresh_epoch(make: Callable[[int], headrace.WindowLoader], budget: int) -> float:
    """Return windows per second of a whole first epoch, opening and reading included."""
    start, served = time.perf_counter(), 0
    with make(budget) as loader:
        for batch in loader:
            served += len(batch)
        assert loader.chunks_read > 0
    return served / (time.perf_counter() - start)


def bare(shape: StoreShape, args: argparse.Namespace, num_threads: int) -> float:
    """Return windows per second of nothing but ``index_select`` into a buffer that is used again."""
    width, length = shape.variables - 1, args.length
    # Filled, because untouched pages would all be the same page of zeros and stay in the cache.
    pool = torch.rand(shape.basins * shape.steps, width)
    view = pool.as_strided((pool.shape[0] - length + 1, length * width), (width, 1))
    batches = args.windows // args.batch_size // num_threads
    rows = torch.from_numpy(np.random.default_rng(0).integers(0, view.shape[0], batches * args.batch_size))

    def work() -> None:
        torch.set_num_threads(1)
        out = torch.empty(args.batch_size, length * width)
        for first in range(0, rows.shape[0], args.batch_size):
            torch.index_select(view, 0, rows[first : first + args.batch_size], out=out)

    threads = [threading.Thread(target=work) for _ in range(num_threads)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rows.shape[0] * num_threads / (time.perf_counter() - start)


def report(shape: StoreShape, args: argparse.Namespace, rates: dict[str, list[float]]) -> list[dict[str, object]]:
    """Print the table and return its rows."""
    settings = {"store": shape.name, "batch_size": args.batch_size, "length": args.length, "repeats": args.repeats}
    medians = {name: statistics.median(values) for name, values in rates.items()}
    one, two = medians["bare gather, 1 thread"], medians["bare gather, 2 threads"]
    print(f"{settings}, load {os.getloadavg()[0]:.1f}, RSS {psutil.Process().memory_info().rss / 2**30:.2f} GiB")
    print(f"{'side':46} {'windows/s':>12} {'of bare 1':>10} {'of bare 2':>10}   spread")
    rows = []
    for name, values in rates.items():
        low, high = min(values), max(values)
        rate = medians[name]
        print(f"{name:46} {rate:12,.0f} {rate / one:10.2f} {rate / two:10.2f}   {low:,.0f} to {high:,.0f}")
        row = {"benchmark": "loader_rate", "side": name, "windows_per_second": values, "ratio_to_bare_1": rate / one}
        rows.append(row | {"ratio_to_bare_2": rate / two} | settings | machine())
    return rows


if __name__ == "__main__":
    main()
