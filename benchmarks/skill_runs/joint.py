"""Forty-nine real daily basins of eleven sources as one training: stores, periods, and statics of the training years.

Every record of ten years or more with precipitation and streamflow counts once: a gauge that two sources hold, and a
record whose precipitation is split into rain and snow, are left out. Data sets differ in what else they observe, so
temperature and potential evapotranspiration are not required. Basins of one source with other periods are data sets of
their own.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

ABSENT = "not_observed"
"""Array name that no store has."""
_DRY = 0.1
"""mm/day below which a day is dry."""
STATICS = ("rain_mean", "rain_deviation", "dry_share", "temperature_mean", "temperature_deviation", "evaporation_mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Basins of one store with their periods.

    Parameters
    ----------
    store
        Folder of the records.
    rain, temperature, evaporation, flow
        Arrays; temperatures are means or maxima of the day, flows in any unit, since each basin is scaled by itself.
    train, test
        First and last day of each period.
    basins
        Their ids.
    """

    store: str
    rain: str
    flow: str
    train: tuple[str, str]
    test: tuple[str, str]
    basins: str
    temperature: str = ABSENT
    evaporation: str = ABSENT

    @property
    def ids(self) -> list[str]:
        """Ids of the basins."""
        return self.basins.split()


SOURCES = {
    "airgr": Source(
        store="airgr_daily", rain="P", temperature="T", evaporation="E", flow="Qmm",
        train=("1984-01-01", "2004-12-31"), test=("2005-01-01", "2012-12-31"), basins="L0123001 L0123002",
    ),
    "bom_hrs": Source(
        store="bom_hrs_daily", rain="Precip_mm", temperature="Tmax", flow="Flow_ML",
        train=("1975-01-01", "2007-12-31"), test=("2008-01-01", "2018-12-31"),
        basins="105105A 235203 410044 602004",
    ),
    "camels_fr": Source(
        store="camels_fr_daily", rain="Ptot", temperature="Temp", evaporation="Evap", flow="Qmmd",
        train=("1999-01-01", "2011-12-31"), test=("2012-01-01", "2018-12-31"),
        basins="A273011002 A605102001 B222001001 E540031001 F439000101 H010002001 H120101001 H622101001 "
        "J421191001 K134181001 K265401001 K731261001 X031001001 X045401001 Y643401001 Y862000101",
    ),
    "camels_gb_severn": Source(
        store="camels_gb_severn_daily", rain="precipitation", evaporation="peti", flow="discharge_spec",
        train=("1984-03-01", "2006-12-31"), test=("2007-01-01", "2015-09-30"),
        basins="54001 54002 54029 54032 54057 54095",
    ),
    "camels_us": Source(
        store="camels_us_daily", rain="prcp_daymet", temperature="tmax_daymet", evaporation="PET", flow="q_mmd_obs",
        train=("1980-10-01", "2004-09-30"), test=("2004-10-01", "2014-12-31"), basins="01031500",
    ),
    "holmes_quebec": Source(
        store="holmes_daily", rain="P", temperature="T", evaporation="E0", flow="Qo",
        train=("1975-03-01", "1996-12-31"), test=("1997-01-01", "2003-12-31"), basins="AuSaumon",
    ),
    "holmes_mississippi": Source(
        store="holmes_daily", rain="P", evaporation="E0", flow="Qo",
        train=("1957-01-01", "1979-12-31"), test=("1980-01-01", "1987-12-31"), basins="Leaf",
    ),
    "hydpy_lahn": Source(
        store="hydpy_lahn_daily", rain="p", temperature="t", evaporation="epn", flow="obs_q",
        train=("1989-11-01", "2010-12-31"), test=("2011-01-01", "2020-12-31"),
        basins="dill_assl lahn_kalk lahn_leun lahn_marb",
    ),
    "hydrobricks_ch": Source(
        store="hydrobricks_ch_daily", rain="precip", temperature="temp", evaporation="pet_sim", flow="discharge_mmd",
        train=("1981-01-01", "2008-12-31"), test=("2009-01-01", "2020-12-31"),
        basins="ch_sitter_appenzell ch_sitter_stgallen",
    ),
    "hydromad_east": Source(
        store="hydromad_au_daily", rain="P", temperature="E", flow="Q",
        train=("1966-08-04", "1994-12-31"), test=("1995-01-01", "2003-06-12"),
        basins="Cotter Molonglo Orroral Queanbeyan",
    ),
    "hydromad_west": Source(
        store="hydromad_au_daily", rain="P", temperature="E", flow="Q",
        train=("1974-05-18", "1992-12-31"), test=("1993-01-01", "1999-03-16"), basins="BinghamTrib SalmonBrook",
    ),
    "hydromad_canning": Source(
        store="hydromad_au_daily", rain="P", evaporation="E", flow="Q",
        train=("1977-01-01", "1984-12-31"), test=("1985-01-01", "1987-12-31"), basins="Canning",
    ),
    "raven_matapedia": Source(
        store="raven_ca_daily", rain="pr_era5pt1", temperature="tmax_era5pt1", flow="qobs",
        train=("1998-01-01", "2012-12-31"), test=("2013-01-01", "2020-12-31"), basins="01BD009",
    ),
    "raven_famine": Source(
        store="raven_ca_daily", rain="pr_station0", temperature="tasmax_station0", flow="qobs",
        train=("1998-01-01", "2011-12-31"), test=("2012-01-01", "2018-12-31"), basins="famine",
    ),
    "tossh_gb": Source(
        store="tossh_gb_daily", rain="P", temperature="T", evaporation="PET", flow="Q",
        train=("1999-01-01", "2005-12-31"), test=("2006-01-01", "2008-12-31"), basins="33029 39020",
    ),
    "tuwmodel_vils": Source(
        store="tuwmodel_vils_daily", rain="P_Vils_zone3", temperature="T_Vils_zone3", evaporation="PET_Vils_zone3",
        flow="Q_Vils", train=("1976-01-01", "1998-12-31"), test=("1999-01-01", "2007-12-31"), basins="Vils",
    ),
}  # fmt: skip


def write_statics(stores: Path) -> None:
    """Write one attributes store: what the inputs of the training years tell of each basin's climate."""
    ids, rows = [], []
    for source in SOURCES.values():
        series = xr.open_zarr(stores / f"{source.store}_timeseries.zarr", chunks=None, mask_and_scale=False)
        own = series.sel(time=slice(*source.train))
        for basin in source.ids:
            one = own.sel(basin=basin)
            rain, warmth, drying = (
                one[name].values if name != ABSENT else np.full(one.sizes["time"], np.nan)
                for name in (source.rain, source.temperature, source.evaporation)
            )
            fallen = rain[np.isfinite(rain)]
            ids.append(basin)
            rows.append(
                [
                    fallen.mean(), fallen.std(), np.mean(fallen < _DRY),
                    _or_nan(np.mean, warmth), _or_nan(np.std, warmth), _or_nan(np.mean, drying),
                ]
            )  # fmt: skip
    columns = {name: ("basin", values) for name, values in zip(STATICS, np.array(rows).T, strict=True)}
    xr.Dataset(columns, {"basin": ids}).to_zarr(stores / "joint_attributes.zarr", mode="w", zarr_format=2)


def _or_nan(of: Any, values: Any) -> float:
    kept = values[np.isfinite(values)]
    return float(of(kept)) if kept.size else float("nan")


def joint_config(stores: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of the training; ``settings`` has ``length``, ``stride``, ``loader`` and ``train``."""
    datasets = {
        name: {
            "timeseries": str(stores / f"{source.store}_timeseries.zarr"),
            "attributes": str(stores / "joint_attributes.zarr"),
            "basins": source.ids,
            "t_range_train": list(source.train),
            "t_range_test": list(source.test),
            "variables": {
                "relevant": {
                    "precipitation": source.rain,
                    "temperature": {"physical": source.temperature, "required": False},
                    "potential_evapotranspiration": {"physical": source.evaporation, "required": False},
                },
                "target": {"streamflow": source.flow},
                "constant": list(STATICS),
            },
        }
        for name, source in SOURCES.items()
    }
    warmup = settings["length"] - 1
    return {
        "datasets": datasets,
        "window": {
            "hindcast_length": warmup, "forecast_length": 1, "warmup_length": warmup, "stride": settings["stride"],
        },
        "missing": {
            "missing_policy": "drop", "target_nan_policy": "drop_any_nan", "static_missing": "impute",
            "unit_mismatch_policy": "ignore",
        },
        "normalization": {"scope": "per_basin"},
        "loader": settings["loader"],
        "train": settings["train"],
    }  # fmt: skip
