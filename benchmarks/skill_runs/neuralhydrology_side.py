"""neuralhydrology's side: its ``GenericDataset``, its ``BaseTrainer``, its tester, on the CPU.

A program: one job as JSON on standard input, one row as the last line of standard output. With ``convert`` as its
argument it only writes the records as the files that ``GenericDataset`` reads, which no measurement counts.
"""

import json
import pickle
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import xarray as xr
from skill_runs.cases import CASES, Job, Part, neuralhydrology_config

_CUBIC_FOOT = 0.3048**3
_DAY_SECONDS = 86_400.0


def convert(job: Job) -> None:
    """Write one NetCDF file per basin and one table of attributes."""
    case, folder = CASES[job.case], Path(job.netcdf)
    (folder / "time_series").mkdir(parents=True, exist_ok=True)
    (folder / "attributes").mkdir(exist_ok=True)
    stores = Path(job.stores) / case.source
    # Without masking: in these stores a true zero equals the fill value.
    series = xr.open_zarr(f"{stores}_timeseries.zarr", chunks=None, mask_and_scale=False)
    attributes = xr.open_zarr(f"{stores}_attributes.zarr", chunks=None, mask_and_scale=False)
    table = (
        attributes[list(case.statics.values())].to_dataframe().rename(columns={v: k for k, v in case.statics.items()})
    )
    for part in case.parts.values():
        for basin in part.basins:
            own = series.sel(basin=basin)
            frame = pd.DataFrame({name: own[array].values for name, array in case.inputs.items()})
            frame["streamflow"] = own[part.target].values * _to_mm_per_day(part, table.loc[basin, "area"])
            frame.index = pd.DatetimeIndex(series["time"].values, name="date")
            frame.to_xarray().to_netcdf(folder / "time_series" / f"{basin}.nc", engine="scipy")
    basins = [basin for part in case.parts.values() for basin in part.basins]
    table.loc[basins].to_csv(folder / "attributes" / "attributes.csv", index_label="gauge_id")


def _to_mm_per_day(part: Part, area: float) -> float:
    # mm = m³ / (km² · 10⁶ m²) · 10³
    return _CUBIC_FOOT * _DAY_SECONDS / (area * 1e3) if part.cubic_feet else 1.0


def train(job: Job) -> dict[str, Any]:
    """Train and evaluate; return the seconds of each stage, windows, and NSE per basin."""
    # Its logger imports the writer of TensorBoard files, which this configuration does not use.
    sys.modules["torch.utils.tensorboard"] = types.ModuleType("torch.utils.tensorboard")
    sys.modules["torch.utils.tensorboard"].__dict__["SummaryWriter"] = None
    import torch
    from neuralhydrology.evaluation.evaluate import start_evaluation
    from neuralhydrology.training.basetrainer import BaseTrainer
    from neuralhydrology.utils.config import Config

    started, imported = time.time() - psutil.Process().create_time(), time.perf_counter()
    trainer = BaseTrainer(Config(_with_files(job)))
    trainer.initialize_training()
    windows = len(trainer.loader.dataset)
    prepared = time.perf_counter()
    trainer.train_and_validate()
    trained = time.perf_counter()
    start_evaluation(cfg=trainer.cfg, run_dir=trainer.cfg.run_dir, period="test")
    evaluated = time.perf_counter()
    [path] = trainer.cfg.run_dir.glob("test/*/test_results.p")
    with path.open("rb") as file:
        results = pickle.load(file)
    [frequency] = next(iter(results.values()))
    scored = {basin: result[frequency] for basin, result in results.items()}
    return {
        "import_seconds": started,
        "prepare_seconds": prepared - imported,
        "train_seconds": trained - prepared,
        "evaluate_seconds": evaluated - trained,
        "torch_threads": torch.get_num_threads(),
        "train_windows": windows,
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "nse": {basin: float(result["NSE"]) for basin, result in scored.items()},
        "steps": {basin: _steps(result["xr"]) for basin, result in scored.items()},
    }


def _steps(result: xr.Dataset) -> int:
    """Return how many steps were both observed and simulated."""
    both = result["streamflow_obs"].notnull() & result["streamflow_sim"].notnull()
    return int(np.asarray(both).sum())


def _with_files(job: Job) -> dict[str, Any]:
    """Return the configuration, with basins and periods in the files that it names."""
    folder = Path(job.work_dir)
    folder.mkdir(parents=True, exist_ok=True)
    parts = CASES[job.case].parts.values()
    config = neuralhydrology_config(job)
    (folder / "basins.txt").write_text("\n".join(b for part in parts for b in part.basins), encoding="utf-8")
    for split, of in (("train", "train"), ("validation", "test"), ("test", "test")):
        periods = {}
        for part in parts:
            first, last = (pd.Timestamp(day) for day in getattr(part, of))
            periods |= {basin: {"start_dates": [first], "end_dates": [last]} for basin in part.basins}
        path = folder / f"{split}_periods.p"
        path.write_bytes(pickle.dumps(periods))
        config[f"per_basin_{split}_periods_file"] = str(path)
        config[f"{split}_basin_file"] = str(folder / "basins.txt")
    return config


def main() -> None:
    """Convert, or train."""
    job = Job(**json.load(sys.stdin))
    if "convert" in sys.argv[1:]:
        convert(job)
        return
    print("\n" + json.dumps(train(job)))


if __name__ == "__main__":
    main()
