"""The slow, obvious loader: open whole stores, decode in float64, list every window, slice it.

Nothing here calls Headrace: only its configuration is read. Steps, basins and data sets are numbered as the loader
numbers them: data sets in the configuration's order, configured basins in the store's order.
"""

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

from headrace.schemas.config import Config, DatasetConfig, MissingConfig
from headrace.schemas.variables import VariableConfig
from headrace.schemas.windows import WindowSpec

Window = tuple[int, int, int]
"""Data set, basin, start."""
Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class OracleDataset:
    """One data set, whole. Values are canonical, float64 holding float32, NaN missing; None: the store lacks it."""

    config: DatasetConfig
    ids: list[str]
    basins: dict[str, list[int]]
    """Split → its basins."""
    periods: dict[str, tuple[int, int]]
    segments: list[tuple[int, int]]
    inputs: dict[str, Values | None]
    targets: dict[str, Values | None]
    statics: dict[str, Values | None]

    @property
    def steps(self) -> int:
        """Steps of the record."""
        return self.segments[-1][1]


def read_dataset(config: Config, dataset_id: str) -> OracleDataset:
    """Open the stores of a data set and decode all of it."""
    settings = config.datasets[dataset_id]
    group = zarr.open_group(settings.timeseries, mode="r", use_consolidated=False)
    all_ids = _ids(group)
    splits = {split: _chosen(settings, split, all_ids) for split in ("train", "valid", "test")}
    rows = [row for row, name in enumerate(all_ids) if any(name in names for names in splits.values())]
    ids = [all_ids[row] for row in rows]
    statics = {
        name: _static(settings, wanted, ids, config.missing) for name, wanted in settings.variables.constant.items()
    }
    series = {}
    for role in ("relevant", "target"):
        for name, wanted in getattr(settings.variables, role).items():
            values = _series(group, settings, wanted, ids, rows, config.missing)
            series[role, name] = values
    periods, segments = _time(group, settings)
    return OracleDataset(
        config=settings,
        ids=ids,
        basins={split: [i for i, name in enumerate(ids) if name in names] for split, names in splits.items()},
        periods=periods,
        segments=segments,
        inputs={name: series["relevant", name] for name in settings.variables.relevant},
        targets={name: series["target", name] for name in settings.variables.target},
        statics=statics,
    )


def _ids(group: zarr.Group) -> list[str]:
    return [i.decode() if isinstance(i, bytes) else str(i) for i in np.asarray(group["basin"]).tolist()]


def _chosen(settings: DatasetConfig, split: str, ids: Sequence[str]) -> list[str]:
    named = settings.basins if isinstance(settings.basins, str | tuple) else getattr(settings.basins, split)
    return list(ids) if named == "all" else list(named)


def _time(group: zarr.Group, settings: DatasetConfig) -> tuple[dict[str, tuple[int, int]], list[tuple[int, int]]]:
    stored: Any = group["time"]
    attrs = {k: v for k, v in stored.attrs.items() if k in ("units", "calendar")}
    coded = xr.Dataset(coords={"time": ("time", np.asarray(stored), attrs)})
    times = xr.decode_cf(coded)["time"].values.astype("datetime64[s]")
    differences = np.diff(times)
    jumps: Any = np.flatnonzero(differences != differences.min()) + 1 if len(times) > 1 else []
    segments = [(int(a), int(b)) for a, b in pairwise([0, *jumps, len(times)])]
    periods = {}
    for split in ("train", "valid", "test"):
        dates = getattr(settings, f"t_range_{split}")
        if dates is not None:
            first, last = (np.datetime64(text, "s") for text in dates)
            end = last + np.timedelta64(1, "D") if len(dates[1]) == 10 else last + np.timedelta64(1, "s")
            inside = np.flatnonzero((times >= first) & (times < end))
            periods[split] = (int(inside[0]), int(inside[-1]) + 1)
    return periods, segments


def _series(
    group: zarr.Group,
    settings: DatasetConfig,
    wanted: VariableConfig,
    ids: list[str],
    rows: list[int],
    missing: MissingConfig,
) -> Values | None:
    if wanted.physical not in group:
        return None
    raw, absent, array = _raw(group, settings.timeseries, wanted.physical, ("basin", "time"))
    values = _decoded(raw, absent, array, wanted, missing)[rows]
    if wanted.per_area is not None:
        constants = settings.variables.constant
        area_config = constants.get(wanted.per_area, VariableConfig(physical=wanted.per_area))
        area = _static(settings, area_config, ids, missing)
        assert area is not None
        # The tests use m3/s, km2 and mm/day only: m³/s over km² is 86.4 mm/day.
        values = values * 86.4 / area[:, None]
    return _valid(values, wanted)


def _static(settings: DatasetConfig, wanted: VariableConfig, ids: list[str], missing: MissingConfig) -> Values | None:
    assert settings.attributes is not None
    group = zarr.open_group(settings.attributes, mode="r", use_consolidated=False)
    if wanted.physical not in group:
        return None
    raw, absent, array = _raw(group, settings.attributes, wanted.physical, ("basin",))
    values = _valid(_decoded(raw, absent, array, wanted, missing), wanted)
    rows = {name: row for row, name in enumerate(_ids(group))}
    return np.array([values[rows[name]] if name in rows else np.nan for name in ids])


def _raw(group: zarr.Group, uri: str, name: str, dims: tuple[str, ...]) -> tuple[NDArray[Any], NDArray[np.bool_], Any]:
    """Return raw values and where no object is stored, in the order of ``dims``."""
    array: Any = group[name]
    names = array.metadata.dimension_names if array.metadata.zarr_format == 3 else array.attrs["_ARRAY_DIMENSIONS"]
    absent = np.zeros(array.shape, dtype=bool)
    sizes = array.shards or array.chunks
    for key in np.ndindex(*(-(-n // c) for n, c in zip(array.shape, sizes, strict=True))):
        if not (Path(uri) / name / array.metadata.encode_chunk_key(key)).exists():
            absent[tuple(slice(k * c, (k + 1) * c) for k, c in zip(key, sizes, strict=True))] = True
    spare = tuple(i for i, dim in enumerate(names) if dim not in dims)
    order = [dim for dim in names if dim in dims]
    found = []
    for whole in (np.asarray(array), absent):
        flat = whole.squeeze(axis=spare)
        found.append(flat if tuple(order) == dims else flat.T)
    return found[0], found[1], array


def _decoded(
    raw: NDArray[Any], absent: NDArray[np.bool_], array: Any, wanted: VariableConfig, missing: MissingConfig
) -> Values:
    """Apply DESIGN section 2 up to the configured scale and offset, in float64."""
    fill = array.metadata.fill_value
    flags = [_number(array.attrs[k]) for k in ("_FillValue", "missing_value") if k in array.attrs]
    flags += list(wanted.missing_values)
    if array.metadata.zarr_format == 2 and fill is not None and fill != 0:
        flags.append(float(fill))
    gone = ~np.isfinite(raw) if raw.dtype.kind == "f" else np.zeros(raw.shape, dtype=bool)
    for flag in flags:
        if not np.isnan(flag):
            gone |= raw == raw.dtype.type(flag)
    if (fill is not None and fill != 0) or missing.absent_chunk == "missing":
        gone |= absent
    values = raw.astype(np.float64) * float(array.attrs.get("scale_factor", 1.0)) + float(
        array.attrs.get("add_offset", 0.0)
    )
    return np.where(gone, np.nan, values * wanted.scale + wanted.offset)


def _number(value: Any) -> float:
    return float(value) if not isinstance(value, str) else float(struct.unpack("<d", base64.b64decode(value))[0])


def _valid(values: Values, wanted: VariableConfig) -> Values:
    low = -np.inf if wanted.valid_min is None else wanted.valid_min
    high = np.inf if wanted.valid_max is None else wanted.valid_max
    with np.errstate(over="ignore"):
        single = np.where((values >= low) & (values <= high), values, np.nan).astype(np.float32)
    return np.where(np.isfinite(single), single, np.nan).astype(np.float64)


def list_windows(
    dataset: OracleDataset, split: str, spec: WindowSpec, missing: MissingConfig, basins: Sequence[str] | None = None
) -> list[tuple[int, int]]:
    """Return (basin, start) of every window of a split, by trying every start of every basin."""
    if split not in dataset.periods:
        return []
    first, last = dataset.periods[split]
    policy = missing.target_nan_policy if split == "train" else "keep"
    targets = [v for v in dataset.targets.values() if v is not None]
    inputs = [
        values
        for name, values in dataset.inputs.items()
        if values is not None
        and (dataset.config.variables.relevant[name].missing_policy or missing.missing_policy) == "drop"
    ]
    found = []
    for basin in dataset.basins[split]:
        if basins is not None and dataset.ids[basin] not in basins:
            continue
        for start in range(dataset.steps - spec.length + 1):
            stop, target = start + spec.length, start + spec.warmup_length
            segment = next(s for s in dataset.segments if s[0] <= start < s[1])
            if stop > segment[1] or target < first or stop > last:
                continue
            if (start - max(segment[0], first - spec.warmup_length)) % spec.stride:
                continue
            gone = [np.isnan(v[basin, target:stop]) for v in targets]
            if gone and policy == "drop_any_nan" and any(g.any() for g in gone):
                continue
            if gone and policy == "drop_all_nan" and all(g.all() for g in gone):
                continue
            if any(np.isnan(v[basin, start:stop]).any() for v in inputs):
                continue
            found.append((basin, start))
    return found


def column(values: Mapping[str, Values | None], name: str, shape: tuple[int, ...]) -> Values:
    """Return the values of a variable, all NaN where the data set lacks it."""
    found = values.get(name)
    return np.full(shape, np.nan) if found is None else found
