"""Small stores of published data sets, with the names, arrays, units and record that their presets promise.

Laid out as hydrodataset lays them out: format 2, float64, all basins and 3650 steps a chunk, int64 nanoseconds.
"""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from headrace.schemas.presets import read_preset

BASINS = ("01013500", "01022500")
_CHUNK = 3650


def write_published(folder: Path, dataset_id: str) -> None:
    """Write both stores of a daily data set: two basins, every default array, and every static.

    One basin lacks a static, as real ones do; classes and codes are text.
    """
    preset = read_preset(dataset_id)
    assert preset.step_seconds == 86400
    num_days = (date.fromisoformat(preset.last) - date.fromisoformat(preset.first)).days + 1
    random = np.random.default_rng(len(dataset_id))
    group = _group(folder / preset.timeseries)
    for series in preset.series.values():
        if series.default is not None:
            stored = series.sources[series.default]
            values = random.gamma(2.0, 1.0, (len(BASINS), num_days))
            _put(group, stored.physical, values, ("basin", "time"), units=stored.unit)
    first = np.datetime64(preset.first, "ns").astype(np.int64)
    times = first + np.arange(num_days) * np.int64(86_400_000_000_000)
    _put(group, "time", times, ("time",), units="nanoseconds since 1970-01-01", calendar="proleptic_gregorian")
    zarr.consolidate_metadata(group.store)
    group = _group(folder / preset.attributes)
    numeric = [static for static in preset.statics.values() if static.numeric]
    for static in preset.statics.values():
        values = random.gamma(2.0, 1.0, len(BASINS))
        if static is numeric[-1]:
            values[1] = np.nan
        _put(group, static.physical, values if static.numeric else np.array(["a", "b"]), ("basin",), units=static.unit)
    zarr.consolidate_metadata(group.store)


def _group(path: Path) -> zarr.Group:
    group = zarr.open_group(path, mode="w", zarr_format=2)
    _put(group, "basin", np.array(BASINS), ("basin",))
    return group


def _put(group: zarr.Group, name: str, values: "np.ndarray[Any, Any]", dims: tuple[str, ...], **attrs: str) -> None:
    text = values.dtype.kind == "U"
    chunks = tuple(min(size, _CHUNK) for size in values.shape)
    array = group.create_array(name, shape=values.shape, chunks=chunks, dtype=str if text else values.dtype)
    array[:] = values.tolist() if text else values
    array.attrs.update({"_ARRAY_DIMENSIONS": list(dims), **attrs})
