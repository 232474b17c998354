"""Folders for reports: an index and runs of it, with names as bad as names get."""

import json
from pathlib import Path

import numpy as np
import zarr

from build_here import build_here
from headrace.schemas.config_io import dump_config, parse_config
from headrace.trainer.run_folder import RunFolder, write_csv
from synthetic import write_attributes, write_store

ATTACK = "<script>alert(1)</script>"
BASINS = ("01000500", ATTACK, "01002500", "01003500")
UNIT = '"><img src=x onerror=alert(2)>'
YEARS = 3


def write_index_of_two(folder: Path) -> Path:
    """Index two data sets: one with gaps and a bad name, one hourly and whole."""
    steps = 365 * YEARS
    lost = np.zeros((len(BASINS), steps), dtype=bool)
    lost[1, 100:500] = True
    lost[3, :] = True
    one = write_store(
        folder / "one.zarr", basins=list(BASINS), steps=steps, variables=("rain", "flow"), chunks=(2, 200),
        missing={"flow": lost}, id_dtype="str", time_start="2000-01-01",
    )  # fmt: skip
    two = write_store(
        folder / "two.zarr", basins=9, steps=600, variables=("rain", "flow"), step_seconds=86_400, zarr_format=3,
        dataset=1,
    )  # fmt: skip
    for name, store in (("one", one), ("two", two)):
        number = len(store.basin_ids)
        columns = {"area": np.linspace(10, 90, number), "gauge_lat": np.linspace(44, 47, number),
                   "gauge_lon": np.linspace(-3, 2, number)}  # fmt: skip
        write_attributes(folder / f"{name}_attributes.zarr", store.basin_ids, columns)
    variables = {
        "relevant": {"rain": {"physical": "rain", "unit": UNIT}},
        "target": {"flow": {"physical": "flow", "unit": "mm/day"}},
        "constant": {"area": "area"},
    }
    datasets = {
        "one": {
            "timeseries": str(one.path), "attributes": str(folder / "one_attributes.zarr"), "variables": variables,
            "t_range_train": ["2000-01-01", "2001-12-31"], "t_range_test": ["2002-01-01", "2002-12-30"],
        },
        "two": {
            "timeseries": str(two.path), "attributes": str(folder / "two_attributes.zarr"), "variables": variables,
            "t_range_train": ["2000-01-01", "2001-03-31"],
        },
    }  # fmt: skip
    window = {"hindcast_length": 29, "forecast_length": 1}
    return build_here({"datasets": datasets, "window": window}, folder / "index")


def write_run(run: Path, index: Path, *, evaluated: bool) -> None:
    """Write the folder of a run as train and evaluate leave it, without training."""
    folder = RunFolder.create(run)
    manifest = json.loads((index / "manifest.json").read_text(encoding="utf-8"))
    folder.write_config(dump_config(parse_config(manifest["config"])))
    tables = {name: manifest["tables"][name]["sha256"] for name in ("basins", "statics", "stats", "variables")}
    (run / "index.json").write_text(json.dumps({"path": str(index), "tables": tables}), encoding="utf-8")
    columns = ("epoch", "train_loss", "valid_loss", "valid_nse_median", "learning_rate", "samples_per_second",
               "data_wait_seconds", "compute_seconds", "seconds")  # fmt: skip
    rows = [(e, 1 / (e + 1), 1.2 / (e + 1), 0.2 * e, 1e-3 / (e + 1), 5_000 + e, 0.002, 0.030, 12.0) for e in range(4)]
    write_csv(folder.metrics, columns, [[str(cell) for cell in row] for row in rows])
    if evaluated:
        write_evaluation(folder.evaluation("test"))


def write_evaluation(out: Path) -> None:
    """Write scores and predictions of the data set ``one``: basin k has NSE 0.9, 0.6, -2 and none."""
    columns = ("scope", "dataset_id", "basin_id", "target", "count", "nse", "kge", "rmse", "nse_pooled", "note")
    nse = ("0.9", "0.6", "-2.0", "")
    rows = [
        [
            "basin",
            "one",
            basin,
            "flow",
            "300" if score else "0",
            score,
            score,
            "1.5",
            "",
            "" if score else "no_observations",
        ]
        for basin, score in zip(BASINS, nse, strict=True)
    ]
    rows += [
        [scope, name, "", "flow", "900", "0.6", "0.6", "1.5", "0.7", ""]
        for scope, name in (("dataset", "one"), ("all", ""))
    ]
    write_csv(out / "metrics.csv", columns, rows)
    group = zarr.open_group(out / "predictions.zarr", mode="w", zarr_format=3).create_group("one")
    days = np.arange(365 * YEARS)
    flow = 5 + 3 * np.sin(days / 58)
    shape = (len(BASINS), len(days))
    series = {"flow_obs": np.broadcast_to(flow, shape).copy(), "flow_sim": np.broadcast_to(flow * 1.1, shape).copy()}
    series["flow_obs"][0, 800:820] = np.nan
    for name, values in series.items():
        values[:, :730] = np.nan
        array = group.create_array(name, shape=shape, dtype="float32", fill_value=float("nan"))
        array[:] = values.astype(np.float32)
        array.update_attributes({"units": "mm/day"})
    group.create_array("basin", shape=(len(BASINS),), dtype=str)[:] = np.array(BASINS, dtype=object)
    time = group.create_array("time", data=days.astype(np.int64))
    time.update_attributes({"units": "days since 2000-01-01", "calendar": "standard"})
