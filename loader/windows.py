"""Tables → windows: the runs of starts that a loader serves.

The index keeps the windows of its own shape and policies; any other shape or policy is worked out from the observed
runs by the same rule (:mod:`headrace.schemas.windows`), with no rescan.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.loader.catalog import Index
from headrace.loader.columns import numbers
from headrace.loader.sources import members_of_splits
from headrace.loader.spec import ServeSpec
from headrace.schemas.config import Config, MissingConfig
from headrace.schemas.intervals import Intervals
from headrace.schemas.windows import TimeRange, find_windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Runs of starts, struct of arrays, sorted by (dataset, basin, start); never one row per window.

    Parameters
    ----------
    dataset
        int16 [R], position among the loader's data sets.
    basin, start, stop
        int32 [R]; starts are start, start + stride, … below stop.
    num_windows
        int64 [R].
    stride
        Steps between starts.
    """

    dataset: NDArray[np.int16]
    basin: NDArray[np.int32]
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    num_windows: NDArray[np.int64]
    stride: int

    @property
    def total(self) -> int:
        """Number of windows."""
        return int(self.num_windows.sum())


def load_windows(index: Index, spec: ServeSpec) -> Windows:
    """Return the windows of a split for the given shape, policies, data sets and basins."""
    parts = []
    for number, (dataset_id, basins) in enumerate(zip(spec.dataset_ids, spec.basins, strict=True)):
        if _as_indexed(index.config, spec, dataset_id):
            table = index.fetch("window_runs", split=spec.split, dataset_id=dataset_id)
            columns = {name: numbers(table, name) for name in ("basin", "start", "stop", "num_windows")}
        else:
            columns = _work_out(index, spec, dataset_id)
        chosen = np.zeros(max(columns["basin"].max(initial=-1), basins.max(initial=-1)) + 1, dtype=bool)
        chosen[basins] = True
        columns = {name: values[chosen[columns["basin"]]] for name, values in columns.items()}
        columns["dataset"] = np.full(columns["basin"].shape, number, dtype=np.int16)
        parts.append(columns)
    joined = {name: np.concatenate([p[name] for p in parts]) if len(parts) > 1 else parts[0][name] for name in parts[0]}
    pa.default_memory_pool().release_unused()
    return Windows(stride=spec.window.stride, **joined)


def dropping_inputs(config: Config, missing: MissingConfig, dataset_id: str) -> list[str]:
    """Return the inputs of a data set whose missing values drop a window."""
    variables = config.variables_of(dataset_id, "input")
    return sorted(n for n, v in variables.items() if (v.missing_policy or missing.missing_policy) == "drop")


def _as_indexed(config: Config, spec: ServeSpec, dataset_id: str) -> bool:
    same_inputs = dropping_inputs(config, config.missing, dataset_id) == dropping_inputs(
        config, spec.missing, dataset_id
    )
    same_target = spec.split != "train" or config.missing.target_nan_policy == spec.missing.target_nan_policy
    return config.window.spec() == spec.window and same_inputs and same_target


def _work_out(index: Index, spec: ServeSpec, dataset_id: str) -> dict[str, NDArray[Any]]:
    periods = index.fetch("periods").to_pylist()
    period = next((p for p in periods if (p["dataset_id"], p["split"]) == (dataset_id, spec.split)), None)
    if period is None:
        return {
            "basin": np.zeros(0, np.int32),
            "start": np.zeros(0, np.int32),
            "stop": np.zeros(0, np.int32),
            "num_windows": np.zeros(0, np.int64),
        }
    present = {
        (r["role"], r["variable"])
        for r in index.fetch("variables").to_pylist()
        if r["dataset_id"] == dataset_id and r["present"]
    }
    targets = [n for n in index.config.names("target") if ("target", n) in present]
    inputs = [n for n in dropping_inputs(index.config, spec.missing, dataset_id) if ("input", n) in present]
    basins = index.fetch("basins", dataset_id=dataset_id)
    found = find_windows(
        spec=spec.window,
        period=TimeRange(start=period["start"], stop=period["stop"]),
        segments=index.time_axis(dataset_id).ranges(),
        basins=numbers(basins, "basin")[members_of_splits(basins)[spec.split]],
        num_basins=basins.num_rows,
        targets=[observed_runs(index, dataset_id, name) for name in targets],
        inputs=[observed_runs(index, dataset_id, name) for name in inputs],
        target_policy=spec.missing.target_nan_policy if spec.split == "train" else "keep",
    )
    return {name: getattr(found.runs, name) for name in ("basin", "start", "stop", "num_windows")}


def observed_runs(index: Index, dataset_id: str, name: str) -> Intervals:
    """Return where a variable is observed: runs of steps by basin number; none where the data set lacks it."""
    runs = index.fetch("runs", dataset_id=dataset_id, variable=name)
    row, start, stop = (numbers(runs, name).astype(np.int64) for name in ("basin", "start", "stop"))
    return Intervals(row=row, start=start, stop=stop)
