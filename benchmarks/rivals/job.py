"""What every side does around its own code: take a job, count what is served until time is up, say what was seen.

A side is a program: one JSON job on standard input, one JSON row as the last line of standard output.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, Dataset, default_collate

Job = dict[str, Any]
"""store, index, names, basins, steps, length, batch_size, seconds, work_dir, settings."""
Row = dict[str, Any]


def run(side: Callable[[Job], Row]) -> None:
    """Run a side as a program."""
    job = json.load(sys.stdin)
    row = side(job)
    print(json.dumps(row | _memory()))


class Clock:
    """Seconds of the set-up, from when the side began to when it asks for the first window."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.perf_counter() - self._start


def serve(batches: Iterable[Any], size_of: Callable[[Any], int], seconds: float, clock: Clock) -> Row:
    """Take batches until time is up, or there are no more.

    Parameters
    ----------
    batches
        What a training loop would iterate over; the wait for the first one counts.
    size_of
        Windows of a batch.
    seconds
        When to stop; a batch under way is taken to its end.
    clock
        Begun before the set-up.
    """
    setup = clock.seconds()
    start = time.perf_counter()
    windows, first_windows, first = 0, 0, 0.0
    for batch in batches:
        windows += size_of(batch)
        passed = time.perf_counter() - start
        if first_windows == 0:
            first_windows, first = windows, passed
        if passed >= seconds:
            break
    passed = time.perf_counter() - start
    return {
        "setup_seconds": setup,
        "first_seconds": first,
        "windows": windows,
        "seconds": passed,
        "windows_per_second": windows / passed,
        "later_windows_per_second": (windows - first_windows) / (passed - first) if windows > first_windows else None,
    }


class Windows(Dataset[Any]):
    """Every window of a store as (basin, start), in a fixed order; sides say what an item is.

    Parameters
    ----------
    basins, steps, length
        Extent of the store, and input steps of a window.
    """

    def __init__(self, basins: int, steps: int, length: int) -> None:
        self._basins, self._starts, self._length = basins, steps - length + 1, length

    def __len__(self) -> int:
        """Return the number of windows."""
        return self._basins * self._starts

    def place(self, item: int) -> tuple[int, slice]:
        """Return the basin and the steps of a window."""
        basin, start = divmod(item, self._starts)
        return basin, slice(start, start + self._length)


def by_sample(dataset: Dataset[Any], size: int, batch_size: int, seed: int = 0) -> Iterator[int]:
    """Take items in random order, one by one, and put each full batch together; yields 1 per item.

    What a ``DataLoader`` without workers does, but it can stop within a batch: where a window takes a second, a batch
    would outlast the measurement.
    """
    kept: list[Any] = []
    for item in np.random.default_rng(seed).permutation(size).tolist():
        kept.append(dataset[item])
        if len(kept) == batch_size:
            default_collate(kept)
            kept = []
        yield 1


def by_batch(dataset: Dataset[Any], batch_size: int, workers: int) -> DataLoader[Any]:
    """Return a shuffled ``DataLoader`` over single windows."""
    return DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=workers)


def _memory() -> Row:
    """Return the peak of this program, workers not included; getrusage would tell the starting process's own."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return {"peak_rss_bytes": int(peak) * 1024}
