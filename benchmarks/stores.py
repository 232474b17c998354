"""Stores of the shapes that users have, written from a seed: smooth seasonal series with two decimals."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreShape:
    """One store.

    Parameters
    ----------
    name
        File name without ``.zarr``.
    basins, steps
        Extent.
    variables
        Arrays; the last one is the target.
    chunks
        Basins and steps of a chunk.
    dtype
        Stored type.
    step_unit
        CF unit of the time axis.
    shards
        Basins and steps of a shard, in Zarr format 3; None writes format 2.
    """

    name: str
    basins: int
    steps: int
    variables: int
    chunks: tuple[int, int]
    dtype: str
    step_unit: str = "days"
    shards: tuple[int, int] | None = None

    @property
    def names(self) -> list[str]:
        """Array names."""
        return [*(f"input_{v}" for v in range(self.variables - 1)), "flow"]


DAILY = StoreShape(name="daily_671", basins=671, steps=12784, variables=7, chunks=(671, 3650), dtype="f8")
SMALL_CHUNKS = StoreShape(name="daily_2000", basins=2000, steps=14600, variables=7, chunks=(300, 365), dtype="f8")
HOURLY = StoreShape(
    name="hourly_200", basins=200, steps=140256, variables=4, chunks=(200, 78840), dtype="f4", step_unit="hours"
)
SHARDED = replace(SMALL_CHUNKS, name="daily_2000_sharded", shards=(300, 3650))
SHAPES = {s.name: s for s in (DAILY, SMALL_CHUNKS, HOURLY, SHARDED)}


def write_store(shape: StoreShape, folder: Path, seed: int = 0) -> Path:
    """Write a store (zarr's default codec) unless it is there; 1 % of the target is missing."""
    path = folder / f"{shape.name}.zarr"
    if (path / "basin").exists():
        return path
    rng = np.random.default_rng(seed)
    group = zarr.open_group(path, mode="w", zarr_format=2 if shape.shards is None else 3)
    season = np.sin(2 * np.pi * np.arange(shape.steps) / (365.25 if shape.step_unit == "days" else 8766))
    for name in shape.names:
        array = _create(group, name, (shape.basins, shape.steps), shape.chunks, shape.dtype, shape.shards)
        array.attrs["units"] = "mm/day"
        for first in range(0, shape.basins, shape.chunks[0]):
            rows = min(shape.chunks[0], shape.basins - first)
            values = season * rng.uniform(1, 5, (rows, 1)) + rng.gamma(0.5, 2.0, (rows, shape.steps))
            if name == "flow":
                values[rng.random(values.shape) < 0.01] = np.nan
            array[first : first + rows] = values.round(2)
    time = _create(group, "time", (shape.steps,), (shape.steps,), "i8")
    time[:] = np.arange(shape.steps)
    time.attrs["units"] = f"{shape.step_unit} since 1980-01-01"
    # Last: where it is, the store is whole.
    ids = np.array([f"{i:08d}" for i in range(shape.basins)])
    basin = _create(group, "basin", ids.shape, ids.shape, "U8" if shape.shards is None else "str")
    basin[:] = ids if shape.shards is None else ids.astype(object)
    return path


def _create(
    group: zarr.Group,
    name: str,
    size: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str,
    shards: tuple[int, int] | None = None,
) -> zarr.Array[Any]:
    """Create an array that says its dims; its fill value is none of its values: xarray takes format 2's for a gap."""
    dims = ["basin", "time"] if len(size) == 2 else [name]
    if group.metadata.zarr_format == 3:
        return group.create_array(name, shape=size, chunks=chunks, shards=shards, dtype=dtype, dimension_names=dims)
    fill_value = float("nan") if dtype.startswith("f") else None
    array = group.create_array(name, shape=size, chunks=chunks, dtype=dtype, fill_value=fill_value)
    array.attrs["_ARRAY_DIMENSIONS"] = dims
    return array


def config_text(shape: StoreShape, path: Path) -> dict[str, object]:
    """Return the configuration that indexes the store whole, every window kept."""
    inputs = {name: name for name in shape.names[:-1]}
    return {
        "datasets": {
            shape.name: {
                "timeseries": str(path),
                "t_range_train": ["1980-01-01", "2100-01-01"],
                "variables": {"relevant": inputs, "target": {"streamflow": "flow"}},
            }
        },
        "missing": {"target_nan_policy": "keep"},
    }
