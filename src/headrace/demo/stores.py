"""The demo's data on disk: two landscapes as Zarr stores that differ in all that stores of different origin differ in.

`alpine` looks like what hydrodataset writes (format 2, basin before time, fill value 0, streamflow in m³/s with -999
for missing), `lowland` like what a reanalysis pipeline writes (format 3, time before basin, Kelvin, NaN, shards). Both
have the gaps of real gauges. A configuration file that explains itself is written beside them.

Letters: S basins, T days.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.demo.config_text import CONFIG_TEXT
from headrace.demo.landscape import ALPINE, LOWLAND, Record, simulate

Mask = NDArray[np.bool_]

CONFIG_NAME = "demo.yml"
FLAG = -999.0
"""What the alpine store writes where streamflow is missing, declared by the attribute `_FillValue`."""
KELVIN = 273.15
MM_PER_DAY_KM2 = 1e3 / 86_400
"""m³/s that 1 mm/day from 1 km² makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOnDisk:
    """One array and how it lies in its store."""

    values: NDArray[Any]
    """In the order of `dims`."""
    dims: tuple[str, ...]
    chunks: tuple[int, ...] | None = None
    """None: one chunk."""
    shards: tuple[int, ...] | None = None
    fill_value: float | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)


def write_demo_stores(folder: Path, seed: int = 0) -> Path:
    """Write both data sets and their configuration.

    Parameters
    ----------
    folder
        Made if needed; stores of the same names in it are replaced.
    seed
        Everything in the stores follows from it.

    Returns
    -------
    pathlib.Path
        The configuration file, `demo.yml` in `folder`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write_alpine(folder, simulate(ALPINE, seed), np.random.default_rng([seed, ALPINE.stream, 1]))
    _write_lowland(folder, simulate(LOWLAND, seed))
    config = folder / CONFIG_NAME
    config.write_text(CONFIG_TEXT, encoding="utf-8")
    return config


def _write_alpine(folder: Path, record: Record, rng: np.random.Generator) -> None:
    attributes, weather = record.attributes, record.weather
    shape = record.streamflow.shape
    flow = record.streamflow * attributes.area[:, None] * MM_PER_DAY_KM2
    flow[_gaps(shape, 6, 60, rng)] = FLAG
    temperature = weather.temperature.copy()
    temperature[_gaps(shape, 2, 6, rng)] = np.nan
    ids = [f"{1_013_500 + 1_140 * row:08d}" for row in range(shape[0])]

    def series(values: NDArray[np.float64], unit: str, **attrs: Any) -> ArrayOnDisk:
        return ArrayOnDisk(
            values=values.astype(np.float32),
            dims=("basin", "time"),
            chunks=(shape[0], 1000),
            fill_value=0.0,
            attrs={"units": unit, **attrs},
        )

    _write_group(
        folder / "alpine_timeseries.zarr",
        2,
        {
            "pcp_mm": series(weather.precipitation, "mm/day"),
            "tair_c": series(temperature, "degC"),
            "pet_mm": series(weather.potential_evaporation, "mm/day"),
            "q_cms": series(flow, "m3/s", _FillValue=FLAG),
            "time": _time(record.days, "nanoseconds", "1970-01-01"),
            "basin": _text(ids),
        },
    )
    _write_group(
        folder / "alpine_attributes.zarr",
        2,
        {
            "area_km2": _static(attributes.area, "km2"),
            "elev_mean_m": _static(attributes.elevation, "m"),
            "forest_frac": _static(attributes.forest_fraction, "1"),
            "soil_depth_m": _static(attributes.soil_depth, "m"),
            "permeability": _static(attributes.permeability, "1"),
            "gauge_lat": _static(record.latitude, "degrees_north"),
            "gauge_lon": _static(record.longitude, "degrees_east"),
            "gauge_name": _text([f"Alpine gauge {row + 1}" for row in range(shape[0])]),
            "basin": _text(ids),
        },
    )


def _write_lowland(folder: Path, record: Record) -> None:
    attributes, weather = record.attributes, record.weather
    num_basins = record.streamflow.shape[0]
    flow = record.streamflow.copy()
    flow[2, record.days < np.datetime64("1995-04-01")] = np.nan  # a young gauge
    flow[5, _between(record.days, "1992-03-10", "1994-11-20")] = np.nan  # washed away, and rebuilt late
    ids = [f"{5_400_100 + 275 * row:08d}" for row in range(num_basins)]

    def series(
        values: NDArray[np.float64], unit: str, chunks: tuple[int, int], shards: tuple[int, int] | None = None
    ) -> ArrayOnDisk:
        return ArrayOnDisk(
            values=values.T.astype(np.float32),
            dims=("time", "basin"),
            chunks=chunks,
            shards=shards,
            fill_value=np.nan,
            attrs={"units": unit},
        )

    _write_group(
        folder / "lowland_timeseries.zarr",
        3,
        {
            "precipitation_sum": series(weather.precipitation, "mm/day", (365, num_basins)),
            "temperature_mean": series(weather.temperature + KELVIN, "K", (1461, 5)),
            "potential_evaporation": series(weather.potential_evaporation, "mm/day", (2000, 4)),
            "streamflow_mmd": series(flow, "mm/day", (500, 2), shards=(2000, num_basins)),
            "time": _time(record.days, "days", "1980-01-01"),
            "basin": _text(ids),
        },
    )
    _write_group(
        folder / "lowland_attributes.zarr",
        3,
        {
            "catchment_area": _static(attributes.area, "km2"),
            "altitude": _static(np.round(attributes.elevation).astype(np.int32), "m"),
            "forest_percent": _static(100 * attributes.forest_fraction, "%"),
            "soil_depth_cm": _static(100 * attributes.soil_depth, "cm"),
            "aquifer_share": _static(attributes.permeability, "1"),
            "latitude": _static(record.latitude, "degrees_north"),
            "longitude": _static(record.longitude, "degrees_east"),
            "basin": _text(ids),
        },
    )


def _gaps(shape: tuple[int, ...], per_basin: int, longest: int, rng: np.random.Generator) -> Mask:
    """Draw `per_basin` stretches of up to `longest` days in each basin: bool [S, T], true in a gap."""
    mask = np.zeros(shape, dtype=bool)
    for row in mask:
        starts = rng.integers(0, shape[1] - longest, size=per_basin)
        for start, length in zip(starts, rng.integers(1, longest + 1, size=per_basin), strict=True):
            row[start : start + length] = True
    return mask


def _between(days: NDArray[np.datetime64], first: str, last: str) -> Mask:
    inside: Mask = (days >= np.datetime64(first)) & (days <= np.datetime64(last))
    return inside


def _time(days: NDArray[np.datetime64], unit: Literal["days", "nanoseconds"], since: str) -> ArrayOnDisk:
    step = np.timedelta64(1, "D" if unit == "days" else "ns")
    return ArrayOnDisk(
        values=((days - np.datetime64(since)) // step).astype(np.int64),
        dims=("time",),
        attrs={"units": f"{unit} since {since}", "calendar": "proleptic_gregorian"},
    )


def _static(values: NDArray[Any], unit: str) -> ArrayOnDisk:
    exact = values.dtype.kind in "iu"
    return ArrayOnDisk(
        values=values if exact else values.astype(np.float64),
        dims=("basin",),
        fill_value=None if exact else np.nan,
        attrs={"units": unit},
    )


def _text(names: list[str]) -> ArrayOnDisk:
    return ArrayOnDisk(values=np.array(names, dtype=object), dims=("basin",))


def _write_group(path: Path, zarr_format: Literal[2, 3], arrays: Mapping[str, ArrayOnDisk]) -> None:
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    for name, array in arrays.items():
        attrs = dict(array.attrs)
        if zarr_format == 2:
            attrs["_ARRAY_DIMENSIONS"] = list(array.dims)
        stored = group.create_array(
            name,
            shape=array.values.shape,
            chunks=array.chunks or array.values.shape,
            shards=array.shards,
            dtype="str" if array.values.dtype == object else array.values.dtype,
            fill_value=array.fill_value,
            dimension_names=array.dims if zarr_format == 3 else None,
            attributes=attrs,
        )
        stored[...] = array.values
    if zarr_format == 2:  # format 3 has no consolidated metadata of its own yet
        zarr.consolidate_metadata(str(path))
