"""Stores of the shapes that users have, written from a seed: smooth seasonal series with two decimals."""

from dataclasses import dataclass
from pathlib import Path

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
    """

    name: str
    basins: int
    steps: int
    variables: int
    chunks: tuple[int, int]
    dtype: str
    step_unit: str = "days"

    @property
    def names(self) -> list[str]:
        """Array names."""
        return [*(f"input_{v}" for v in range(self.variables - 1)), "flow"]


DAILY = StoreShape(name="daily_671", basins=671, steps=12784, variables=7, chunks=(671, 3650), dtype="f8")
SMALL_CHUNKS = StoreShape(name="daily_2000", basins=2000, steps=14600, variables=7, chunks=(300, 365), dtype="f8")
HOURLY = StoreShape(
    name="hourly_200", basins=200, steps=140256, variables=4, chunks=(200, 78840), dtype="f4", step_unit="hours"
)
SHAPES = {s.name: s for s in (DAILY, SMALL_CHUNKS, HOURLY)}


def write_store(shape: StoreShape, folder: Path, seed: int = 0) -> Path:
    """Write a store (format 2, zarr's default codec) unless it is there; 1 % of the target is missing."""
    path = folder / f"{shape.name}.zarr"
    if (path / "basin").exists():
        return path
    rng = np.random.default_rng(seed)
    group = zarr.open_group(path, mode="w", zarr_format=2)
    season = np.sin(2 * np.pi * np.arange(shape.steps) / (365.25 if shape.step_unit == "days" else 8766))
    for name in shape.names:
        array = group.create_array(name, shape=(shape.basins, shape.steps), chunks=shape.chunks, dtype=shape.dtype)
        array.attrs.update({"_ARRAY_DIMENSIONS": ["basin", "time"], "units": "mm/day"})
        for first in range(0, shape.basins, shape.chunks[0]):
            rows = min(shape.chunks[0], shape.basins - first)
            values = season * rng.uniform(1, 5, (rows, 1)) + rng.gamma(0.5, 2.0, (rows, shape.steps))
            if name == "flow":
                values[rng.random(values.shape) < 0.01] = np.nan
            array[first : first + rows] = values.round(2)
    time = group.create_array("time", shape=(shape.steps,), chunks=(shape.steps,), dtype="i8")
    time[:] = np.arange(shape.steps)
    time.attrs.update({"_ARRAY_DIMENSIONS": ["time"], "units": f"{shape.step_unit} since 1980-01-01"})
    basin = group.create_array("basin", shape=(shape.basins,), chunks=(shape.basins,), dtype="U8")
    basin[:] = np.array([f"{i:08d}" for i in range(shape.basins)])
    basin.attrs["_ARRAY_DIMENSIONS"] = ["basin"]
    return path


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
