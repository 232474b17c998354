"""The copy of windows out of a pool: ``torch.index_select(out=)`` against Headrace's, by buffers under way.

A loader fills several batches before the consumer takes one, so each thread fills a number of buffers in turn. The
sides alternate; the table shows medians.
"""

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rows import append, machine

from headrace.loader.copy_windows import copy_windows

_STEPS, _BASINS = 12_784, 671


def main() -> None:
    """Run the sides in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--length", type=int, default=365, help="input steps of a window")
    parser.add_argument("--variables", type=int, default=6, help="inputs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--buffers", default="1,2,4,8,16", help="numbers of buffers that a thread fills in turn")
    parser.add_argument("--batches", type=int, default=1500, help="batches of each thread, side and repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    # Filled, because untouched pages would all be the same page of zeros and stay in the cache.
    inputs = np.random.default_rng(0).random((_BASINS * _STEPS, args.variables), dtype=np.float32)
    targets = np.zeros((inputs.shape[0], 1), dtype=np.float32)
    sides = {"index_select": select_rate, "copy_windows": copy_rate}
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(args.repeats):
        for buffers in map(int, args.buffers.split(",")):
            for name, side in sides.items():
                rates.setdefault((name, buffers), []).append(side(inputs, targets, buffers, args))
    settings = {k: v for k, v in vars(args).items() if k not in ("json", "buffers")}
    print(f"{settings}\n{'buffers':>8} {'index_select':>14} {'copy_windows':>14} {'ratio':>6}")
    rows = []
    for buffers in map(int, args.buffers.split(",")):
        select, copy = (statistics.median(rates[name, buffers]) for name in sides)
        print(f"{buffers:8} {select:14,.0f} {copy:14,.0f} {copy / select:6.2f}")
        measured = {name: rates[name, buffers] for name in sides}
        row = {"benchmark": "copy_rate", "buffers": buffers, "windows_per_second": measured, "ratio": copy / select}
        rows.append(row | settings | machine())
    append(args.json, rows)


def select_rate(inputs: np.ndarray, targets: np.ndarray, buffers: int, args: argparse.Namespace) -> float:
    """Return windows per second of two calls of ``index_select`` a batch."""
    pools = [torch.from_numpy(rows).as_strided((rows.shape[0] - steps + 1, steps * rows.shape[1]), (rows.shape[1], 1))
             for rows, steps in ((inputs, args.length), (targets, 1))]  # fmt: skip

    def fill(rows: np.ndarray, out: list[np.ndarray]) -> None:
        for pool, to in zip(pools, out, strict=True):
            torch.index_select(pool, 0, torch.from_numpy(rows), out=torch.from_numpy(to))

    return rate(fill, inputs, buffers, args)


def copy_rate(inputs: np.ndarray, targets: np.ndarray, buffers: int, args: argparse.Namespace) -> float:
    """Return windows per second of one call of ``copy_windows`` a batch."""

    def fill(rows: np.ndarray, out: list[np.ndarray]) -> None:
        copy_windows((inputs, targets), (rows, rows), (out[0], out[1]))

    return rate(fill, inputs, buffers, args)


def rate(
    fill: Callable[[np.ndarray, list[np.ndarray]], None], inputs: np.ndarray, buffers: int, args: argparse.Namespace
) -> float:
    """Return windows per second of threads that fill their buffers in turn."""
    size, width = args.batch_size, args.length * inputs.shape[1]

    def work(number: int) -> None:
        torch.set_num_threads(1)
        rng = np.random.default_rng(number)
        own = [[np.zeros((size, width), np.float32), np.zeros((size, 1), np.float32)] for _ in range(buffers)]
        for out in own:
            fill(rng.integers(0, inputs.shape[0] - args.length, size), out)
        ready.wait()
        for batch in range(args.batches):
            fill(rng.integers(0, inputs.shape[0] - args.length, size), own[batch % buffers])

    ready = threading.Barrier(args.threads + 1)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(args.threads)]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return args.threads * args.batches * size / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
