"""What is trained: real basins, periods and variables, and the settings that both sides share."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Basins that share a target array and periods.

    Parameters
    ----------
    basins
        Their ids.
    target
        Array of the streamflow.
    train, test
        First and last day of each period.
    cubic_feet
        The target is in ft³/s and becomes mm/day by the basin's area; otherwise it is in mm/day already.
    """

    basins: list[str]
    target: str
    train: tuple[str, str]
    test: tuple[str, str]
    cubic_feet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One source with its parts.

    Parameters
    ----------
    source
        Folder of the records, and name of the stores made of it.
    inputs, statics
        Name in the model → array. The area, in km², is one of the statics.
    parts
        Data set → basins.
    """

    source: str
    inputs: dict[str, str]
    statics: dict[str, str]
    parts: dict[str, Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What both sides are told.

    Parameters
    ----------
    learning_rate_schedule
        Epoch, counted from 0, as text → learning rate from then on; empty leaves ``learning_rate`` as it is.
    clip_gradient_norm
        Longest gradient; None leaves it.
    """

    length: int = 90
    hidden_size: int = 16
    batch_size: int = 256
    epochs: int = 8
    learning_rate: float = 2e-3
    learning_rate_schedule: dict[str, float] = field(default_factory=lambda: {"4": 1e-3, "6": 3e-4})
    dropout: float = 0.2
    clip_gradient_norm: float | None = 1.0
    initial_forget_bias: float = 3.0
    optimizer: str = "Adam"
    loss: str = "NSE*"
    torch_threads: int = 1


_FRENCH = (
    "A273011002 A605102001 B222001001 E540031001 F439000101 H010002001 H120101001 H622101001 "
    "J421191001 K134181001 K265401001 K731261001 X031001001 X045401001 Y643401001 Y862000101"
)
CASES = {
    "camels_fr": Case(
        source="camels_fr_daily",
        inputs={"precipitation": "Ptot", "temperature": "Temp", "potential_evapotranspiration": "Evap"},
        statics={"area": "Area", "elevation": "Hypso_50", "longitude": "X", "latitude": "Y"},
        parts={
            "camels_fr": Part(
                basins=_FRENCH.split(),
                target="Qmmd",
                train=("2000-01-01", "2004-12-31"),
                test=("2012-01-01", "2015-12-31"),
            )
        },
    ),
    "camels_us": Case(
        source="camels_us_daily",
        inputs={
            "precipitation": "prcp_daymet",
            "temperature_min": "tmin_daymet",
            "temperature_max": "tmax_daymet",
            "solar_radiation": "srad_daymet",
            "vapour_pressure": "vp_daymet",
        },
        statics={"area": "area_gages2", "elevation": "elev_mean", "aridity": "aridity"},
        parts={
            "camels_us_usgs": Part(
                basins=["01022500", "01547700", "02064000", "03015500"],
                target="q_cfs_obs",
                cubic_feet=True,
                train=("2000-01-01", "2001-12-31"),
                test=("2002-01-01", "2002-12-31"),
            ),
            "camels_us_sacsma": Part(
                basins=["01031500"],
                target="q_mmd_obs",
                train=("1990-10-01", "2004-09-30"),
                test=("2004-10-01", "2014-12-31"),
            ),
        },
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training of one side; travels between processes as JSON.

    Parameters
    ----------
    case
        Key of :data:`CASES`.
    stores
        Folder of the stores.
    work_dir
        Takes what this training writes.
    netcdf
        Folder of the same records as neuralhydrology reads them.
    seed
        Of weights, dropout and order.
    settings
        Fields of :class:`Settings`.
    """

    case: str
    stores: str
    work_dir: str
    netcdf: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)


def headrace_config(job: Job) -> dict[str, Any]:
    """Return the configuration of Headrace's side."""
    case, settings = CASES[job.case], Settings(**job.settings)
    stores = Path(job.stores) / case.source
    statics: dict[str, Any] = dict(case.statics)
    if any(part.cubic_feet for part in case.parts.values()):
        statics["area"] = {"physical": statics["area"], "unit": "km2"}
    datasets = {
        name: {
            "timeseries": f"{stores}_timeseries.zarr",
            "attributes": f"{stores}_attributes.zarr",
            "basins": part.basins,
            "t_range_train": list(part.train),
            "t_range_test": list(part.test),
            "variables": {
                "relevant": case.inputs,
                "target": {
                    "streamflow": {"physical": part.target}
                    | ({"per_area": "area", "unit": "mm/day"} if part.cubic_feet else {})
                },
                "constant": statics,
            },
        }
        for name, part in case.parts.items()
    }
    warmup = settings.length - 1
    return {
        "datasets": datasets,
        "window": {"hindcast_length": warmup, "forecast_length": 1, "warmup_length": warmup},
        # neuralhydrology leaves out training windows with a missing input, too.
        "missing": {"missing_policy": "drop", "target_nan_policy": "drop_any_nan"},
        "loader": {"batch_size": settings.batch_size, "seed": job.seed},
        "train": {
            "hidden_size": settings.hidden_size,
            "train_epochs": settings.epochs,
            "learning_rate": settings.learning_rate,
            "learning_rate_schedule": {int(e): rate for e, rate in settings.learning_rate_schedule.items()},
            "loss": "nse",
            "dropout": settings.dropout,
            "initial_forget_bias": settings.initial_forget_bias,
            "clip_gradient_norm": settings.clip_gradient_norm,
            "device": "cpu",
        },
    }


def neuralhydrology_config(job: Job) -> dict[str, Any]:
    """Return the configuration of neuralhydrology's side, but for the basin and period files."""
    case, settings = CASES[job.case], Settings(**job.settings)
    return {
        "experiment_name": "skill",
        "run_dir": str(Path(job.work_dir) / "runs"),
        "data_dir": job.netcdf,
        "dataset": "generic",
        "device": "cpu",
        "seed": job.seed,
        "model": "cudalstm",
        "head": "regression",
        "output_activation": "linear",
        "hidden_size": settings.hidden_size,
        "initial_forget_bias": settings.initial_forget_bias,
        "output_dropout": settings.dropout,
        "optimizer": settings.optimizer,
        "loss": "NSE",
        # It counts epochs from 1; 0 stands for the first.
        "learning_rate": {0: settings.learning_rate}
        | {int(epoch) + 1: rate for epoch, rate in settings.learning_rate_schedule.items()},
        "batch_size": settings.batch_size,
        "epochs": settings.epochs,
        "clip_gradient_norm": settings.clip_gradient_norm,
        "seq_length": settings.length,
        "predict_last_n": 1,
        "dynamic_inputs": list(case.inputs),
        "static_attributes": list(case.statics),
        "target_variables": ["streamflow"],
        "metrics": ["NSE", "RMSE", "KGE", "FHV", "FLV", "Peak-Timing"],
        "num_workers": 0,
        "log_tensorboard": False,
        "log_n_figures": 0,
        "save_git_diff": False,
        "verbose": 0,
    }
