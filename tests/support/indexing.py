"""Build indexes of synthetic stores in tests, and the slow, obvious answers they are held against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headrace.indexer import BuildReport, build_index
from headrace.indexer import build as build_module
from headrace.indexer.cluster import Workers
from headrace.indexer.distribute import ScanTask, run_task
from headrace.indexer.progress import Progress
from headrace.indexer.units import ScanUnit
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config
from headrace.schemas.tables import TABLES
from headrace.schemas.variables import DecodeRule
from synthetic import SyntheticStore

Observed = Mapping[str, NDArray[np.bool_]]


def date_of(store: SyntheticStore, step: int) -> str:
    """Return the time of a step as configuration text."""
    return str(store.times[step])


def dataset(store: SyntheticStore, **changes: Any) -> dict[str, Any]:
    """Return the section of one data set: the last variable is the target, training over the whole record."""
    names = store.variables
    section: dict[str, Any] = {
        "timeseries": str(store.path),
        "t_range_train": [date_of(store, 0), date_of(store, store.steps - 1)],
        "variables": {"relevant": {n: n for n in names[:-1]}, "target": {names[-1]: names[-1]}},
    }
    return {**section, **changes}


def config(datasets: Mapping[str, Any], *, window: Any = None, **sections: Any) -> Config:
    """Return a checked configuration; the window is three steps in, one out, unless given."""
    shape = {"hindcast_length": 3, "forecast_length": 0, "warmup_length": 2} if window is None else window
    return parse_config({"datasets": dict(datasets), "window": shape, **sections})


@dataclass
class Scanned:
    """What an inline build scanned."""

    tasks: list[ScanTask] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        """Keys of the scanned units."""
        return [unit.key for task in self.tasks for unit in task.units]

    def run(self, tasks: Sequence[ScanTask], workers: Workers, progress: Progress, *, num_kept: int) -> None:
        """Run tasks one after another in this thread, as `run_tasks` would on a cluster."""
        for task in tasks:
            run_task(task)
            self.tasks.append(task)


def some_unit(**changes: Any) -> ScanUnit:
    """Return a unit of one basin and one step; `changes` are its fields."""
    plain: dict[str, Any] = {
        "key": "k",
        "uri": "u",
        "array": "a",
        "metadata": "m",
        "objects": "o",
        "basin_chunk": 0,
        "time_chunks": (0, 1),
        "rows": (0, 1),
        "steps": (0, 1),
        "cuts": (0, 1),
        "rule": DecodeRule(),
        "area": b"",
        "nbytes": 8,
        "stored_nbytes": 8,
    }
    return ScanUnit(**{**plain, **changes})


def build_inline(settings: Config, out: Path, monkeypatch: Any, **options: Any) -> tuple[BuildReport, Scanned]:
    """Build without a cluster, and tell what was scanned."""
    scanned = Scanned()
    with monkeypatch.context() as patch:
        patch.setattr(build_module, "run_tasks", scanned.run)
        report = build_index(settings, out, **options)
    return report, scanned


def rows(out: Path, table: str, **where: Any) -> list[dict[str, Any]]:
    """Return the rows of a table whose columns equal the given values."""
    found = pq.read_table(out / f"{table}.parquet").to_pylist()
    return [row for row in found if all(row[name] == value for name, value in where.items())]


def table_bytes(out: Path) -> dict[str, bytes]:
    """Return the content of every table and of the manifest."""
    names = [*(f"{name}.parquet" for name in TABLES), "manifest.json", "views.sql"]
    return {name: (out / name).read_bytes() for name in names}


def runs_of(observed: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Return (basin, start, stop) of every run, step by step."""
    found = []
    for basin in range(observed.shape[0]):
        start = None
        for step in range(observed.shape[1] + 1):
            here = step < observed.shape[1] and observed[basin, step]
            if here and start is None:
                start = step
            if not here and start is not None:
                found.append((basin, start, step))
                start = None
    return found


@dataclass(frozen=True, kw_only=True)
class Question:
    """A window question about one data set and split."""

    length: int
    warmup: int
    stride: int
    period: tuple[int, int]
    segments: Sequence[tuple[int, int]]
    targets: Sequence[NDArray[np.bool_]]
    inputs: Sequence[NDArray[np.bool_]] = ()
    policy: str = "drop_any_nan"


def windows_of(question: Question, basins: Sequence[int]) -> tuple[set[tuple[int, int]], dict[tuple[int, str], int]]:
    """Return the (basin, start) that may be served and how many are dropped by (basin, reason), start by start."""
    served: set[tuple[int, int]] = set()
    dropped: dict[tuple[int, str], int] = {}
    first, last = question.period[0] - question.warmup, question.period[1] - question.length + 1

    def drop(basin: int, reason: str) -> None:
        dropped[basin, reason] = dropped.get((basin, reason), 0) + 1

    for basin in basins:
        for _ in range(first, min(0, last), question.stride):
            drop(basin, "record_too_short")
        for begin, end in question.segments:
            for start in range(max(begin, first), min(end, last), question.stride):
                if start + question.length > end:
                    drop(basin, "time_gap")
                elif not _target_allows(question, basin, start):
                    drop(basin, "target_missing")
                elif not all(seen[basin, start : start + question.length].all() for seen in question.inputs):
                    drop(basin, "input_missing")
                else:
                    served.add((basin, start))
    return served, dropped


def _target_allows(question: Question, basin: int, start: int) -> bool:
    if question.policy == "keep" or not question.targets:
        return True
    stop, begin = start + question.length, start + question.warmup
    seen = np.stack([target[basin, begin:stop] for target in question.targets])
    return bool(seen.all()) if question.policy == "drop_any_nan" else bool(seen.any())


def served_by(out: Path, dataset_id: str, split: str, stride: int) -> set[tuple[int, int]]:
    """Return the (basin, start) that the table `windows` serves, checking its counts on the way."""
    found: set[tuple[int, int]] = set()
    for row in rows(out, "windows", dataset_id=dataset_id, split=split):
        starts = range(row["start"], row["stop"], stride)
        assert len(starts) == row["num_windows"] > 0
        assert not found & {(row["basin"], s) for s in starts}
        found |= {(row["basin"], s) for s in starts}
    return found
