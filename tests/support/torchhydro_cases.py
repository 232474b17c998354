"""Random stores and window questions that Headrace and torchhydro must answer alike, as plain JSON values.

A case holds one or two data sets, each with its store, its training period and one or two targets, and a few questions:
window lengths and a target policy. What the two read differently on purpose is left out (docs/moving-over.md): gaps in
the time axis, periods that reach beyond the record, hourly periods that end with a bare date.
"""

from pathlib import Path
from typing import Any

import numpy as np

from build_here import build_here
from headrace.loader.catalog import Index, open_index
from headrace.loader.spec import resolve_spec
from headrace.loader.windows import load_windows
from headrace.schemas.config_io import parse_config
from indexing import runs_of
from layouts import PATTERNS, missing_pattern
from synthetic import SyntheticStore, basin_ids, write_store
from torchhydro_jobs import runs_of_numbers

Case = dict[str, Any]
Answer = dict[str, list[list[Any]]]
"""Data set → [basin id, first start, one past the last start], sorted."""

POLICIES = ("keep", "drop_any_nan", "drop_all_nan")
LENGTHS = ("hindcast_length", "forecast_length", "warmup_length")
# Names with a physical range that torchhydro guesses (flow) and without (level).
ARRAYS = {"precipitation": "rain", "streamflow": "q_obs", "level": "stage"}


def random_case(seed: int, questions: int = 3) -> Case:
    """Return a case that depends on the seed alone."""
    rng = np.random.default_rng(seed)
    targets = ["streamflow", "level"][: int(rng.integers(1, 3))]
    step_seconds = int(rng.choice([86_400, 3_600]))
    names = ["one", "two"][: int(rng.integers(1, 3))]
    sources = {name: _random_source(rng, ["precipitation", *targets], step_seconds) for name in names}
    return {
        "targets": targets,
        "sources": sources,
        "questions": [_random_question(rng, POLICIES[(seed + k) % 3]) for k in range(questions)],
    }


def _random_question(rng: np.random.Generator, policy: str) -> dict[str, Any]:
    length = int(rng.integers(1, 15))
    forecast = int(rng.integers(0, length))
    warmup = int(rng.choice([0, length - 1, int(rng.integers(0, length))]))
    shape = dict(zip(LENGTHS, (length - forecast, forecast, warmup), strict=True))
    return {"shape": shape, "policy": policy}


def _random_source(rng: np.random.Generator, variables: list[str], step_seconds: int) -> dict[str, Any]:
    basins, steps = int(rng.integers(1, 6)), int(rng.integers(8, 50))
    zarr_format = int(rng.choice([2, 3]))
    arrays = {}
    for name in variables:
        holes = missing_pattern(str(rng.choice(PATTERNS)), basins, steps, rng)
        dims = ["basin", "time"] if rng.random() < 0.6 else ["time", "basin"]
        sizes = [basins, steps] if dims[0] == "basin" else [steps, basins]
        chunks = [int(rng.integers(-(-size // 6), size + 1)) for size in sizes]
        flagged = bool(rng.random() < 0.4)
        flag = str(rng.choice(["_FillValue", "missing_value"]))
        # Fill values and flags that the two read differently are left out (docs/moving-over.md).
        fill = str(rng.choice(["nan", "0", "-999"] if zarr_format == 2 else ["nan", "0"]))
        if zarr_format == 2 and flagged and flag == "_FillValue":
            fill = "-999"
        gone = [[int(rng.integers(0, -(-size // c))) for size, c in zip(sizes, chunks, strict=True)]]
        arrays[name] = {
            "dims": dims,
            "chunks": chunks,
            "dtype": str(rng.choice(["float32", "float64"])),
            "fill_value": fill,
            "missing_as": "-999" if flagged else "nan",
            "flag_attribute": flag,
            "absent_chunks": gone if rng.random() < 0.3 else [],
            "missing": [list(run) for run in runs_of(holes)],
        }
    first, last = sorted(int(n) for n in rng.integers(0, steps, 2))
    chosen = rng.permutation(basins)[: int(rng.integers(1, basins + 1))]
    return {
        "basins": basins,
        "steps": steps,
        "zarr_format": zarr_format,
        "step_seconds": step_seconds,
        "arrays": arrays,
        "period": [0, steps - 1] if rng.random() < 0.3 else [first, last],
        "chosen": sorted(int(row) for row in chosen),
    }


def write_case(case: Case, folder: Path) -> dict[str, SyntheticStore]:
    """Write the stores of a case."""
    return {name: _write(source, folder / f"{name}.zarr") for name, source in case["sources"].items()}


def _write(source: dict[str, Any], path: Path) -> SyntheticStore:
    fields = ("dims", "chunks", "dtype", "flag_attribute")
    arrays = {ARRAYS[name]: array for name, array in source["arrays"].items()}
    settings: dict[str, Any] = {f: {name: a[f] for name, a in arrays.items()} for f in fields}
    settings["absent_chunks"] = {name: [tuple(key) for key in a["absent_chunks"]] for name, a in arrays.items()}
    settings["fill_value"] = {name: float(a["fill_value"]) for name, a in arrays.items()}
    settings["missing_as"] = {name: "nan" if a["missing_as"] == "nan" else -999.0 for name, a in arrays.items()}
    missing = {}
    for name, array in arrays.items():
        holes = np.zeros((source["basins"], source["steps"]), dtype=bool)
        for basin, start, stop in array["missing"]:
            holes[basin, start:stop] = True
        missing[name] = holes
    return write_store(
        path,
        basins=source["basins"],
        steps=source["steps"],
        variables=list(arrays),
        zarr_format=source["zarr_format"],
        step_seconds=source["step_seconds"],
        time_unit="hours",
        missing=missing,
        **settings,
    )


def _period(source: dict[str, Any], store: SyntheticStore) -> list[str]:
    days = source["step_seconds"] == 86_400
    return [str(store.times[step].astype("datetime64[D]") if days else store.times[step]) for step in source["period"]]


def _chosen(source: dict[str, Any]) -> list[str]:
    ids = basin_ids(source["basins"])
    return [ids[row] for row in source["chosen"]]


def torchhydro_questions(case: Case, stores: dict[str, SyntheticStore]) -> list[dict[str, Any]]:
    """Return the questions of a case as `torchhydro_jobs.windows` takes them."""
    sources = [
        {
            "dataset_id": name,
            "timeseries_uri": str(stores[name].path),
            "basins": _chosen(source),
            "periods": {"train": _period(source, stores[name])},
            "relevant_cols": {"precipitation": ARRAYS["precipitation"]},
            "target_cols": {target: ARRAYS[target] for target in case["targets"]},
            "constant_cols": [],
        }
        for name, source in case["sources"].items()
    ]
    return [{"sources": sources, "shape": q["shape"], "target_nan_policy": q["policy"]} for q in case["questions"]]


def headrace_answers(case: Case, stores: dict[str, SyntheticStore], out: Path) -> list[Answer]:
    """Return the training windows of each question from one index.

    The first question shapes the index and is read from its table `windows`; the loader works out the others from the
    observed runs, without a new scan.
    """
    first = case["questions"][0]
    datasets = {
        name: {
            "timeseries": str(stores[name].path),
            "basins": _chosen(source),
            "t_range_train": _period(source, stores[name]),
            "variables": {
                "relevant": {"precipitation": ARRAYS["precipitation"]},
                "target": {target: ARRAYS[target] for target in case["targets"]},
            },
        }
        for name, source in case["sources"].items()
    }
    sections = {"window": first["shape"], "missing": {"target_nan_policy": first["policy"]}}
    with open_index(build_here(parse_config({"datasets": datasets, **sections}), out)) as index:
        rows = index.windows("train").to_pylist()
        table: Answer = {name: [] for name in datasets}
        for row in rows:
            table[row["dataset_id"]].append([row["basin_id"], row["start"], row["stop"]])
        return [_joined(table), *(_worked_out(index, question) for question in case["questions"][1:])]


def _worked_out(index: Index, question: dict[str, Any]) -> Answer:
    missing = {"target_nan_policy": question["policy"]}
    windows = load_windows(index, resolve_spec(index, split="train", window=question["shape"], missing=missing))
    answer: Answer = {}
    for number, name in enumerate(index.dataset_ids):
        ids = index.fetch("basins", dataset_id=name).column("basin_id").to_pylist()
        here = windows.dataset == number
        runs = zip(windows.basin[here], windows.start[here], windows.stop[here], strict=True)
        answer[name] = [[ids[basin], int(start), int(stop)] for basin, start, stop in runs]
    return _joined(answer)


def _joined(answer: Answer) -> Answer:
    """Sort, and join runs that touch: how the starts are cut into runs is not compared."""
    joined: Answer = {}
    for name, rows in answer.items():
        starts: dict[str, list[int]] = {}
        for basin, start, stop in rows:
            starts.setdefault(basin, []).extend(range(start, stop))
        joined[name] = [[b, *run] for b in sorted(starts) for run in runs_of_numbers(sorted(starts[b]))]
    return joined
