"""Coordinates of a synthetic store: the time axis, basin ids, consolidated metadata."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import zarr
from numpy.typing import NDArray

SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
NANOSECONDS = 10**9


@dataclass(frozen=True, kw_only=True)
class TimeAxis:
    """A time axis: `steps` stored steps of `step_seconds`, jumping after the keys of `gaps`."""

    steps: int
    start: str
    step_seconds: int
    unit: str
    since: str
    calendar: str
    gaps: Mapping[int, int]

    def positions(self) -> NDArray[np.int64]:
        """Return int64 [steps]: whole steps of `step_seconds` since `start`."""
        positions = np.arange(self.steps, dtype=np.int64)
        for step in self._cuts():
            positions[step + 1 :] += self.gaps[step]
        return positions

    def segments(self) -> tuple[tuple[int, int], ...]:
        """Return the half-open stretches without a gap, in stored steps."""
        edges = [0, *(step + 1 for step in self._cuts()), self.steps]
        return tuple(pairwise(edges))

    def values(self) -> NDArray[Any]:
        """Return the stored numbers: int64 where they are whole in `unit`, else float64."""
        start = cftime.datetime.strptime(_full(self.start), FORMAT, calendar=self.calendar)
        offset = cftime.date2num(start, f"seconds since {_full(self.since)}", self.calendar)
        seconds = round(float(offset)) + self.positions() * self.step_seconds
        if self.unit == "nanoseconds":
            return seconds * NANOSECONDS
        whole, rest = np.divmod(seconds, SECONDS[self.unit])
        return whole if not rest.any() else seconds / SECONDS[self.unit]

    def attrs(self) -> dict[str, str]:
        """Return the CF attributes `units` and `calendar`."""
        return {"units": f"{self.unit} since {self.since}", "calendar": self.calendar}

    def _cuts(self) -> list[int]:
        return sorted(step for step, jump in self.gaps.items() if jump and step + 1 < self.steps)


FORMAT = "%Y-%m-%dT%H:%M:%S"


def write_vector(
    group: zarr.Group,
    name: str,
    data: NDArray[Any],
    attrs: Mapping[str, Any],
    *,
    chunk: int | None = None,
    dim: str | None = None,
    fixed_width: bool = False,
) -> None:
    """Write a one-dimensional array over `dim` (default: its own name)."""
    zarr_format = group.metadata.zarr_format
    attrs = dict(attrs)
    if zarr_format == 2:
        attrs["_ARRAY_DIMENSIONS"] = [dim or name]
    text = data.dtype.kind in "OUT" and not fixed_width
    fill: Any = np.nan if data.dtype.kind == "f" else None
    with warnings.catch_warnings():
        # Fixed-width text in format 3 has no specification yet; users have such stores.
        warnings.simplefilter("ignore", zarr.errors.UnstableSpecificationWarning)
        array = group.create_array(
            name,
            shape=data.shape,
            chunks=(chunk or max(1, data.size),),
            dtype="str" if text else data.dtype,
            fill_value=fill,
            dimension_names=(dim or name,) if zarr_format == 3 else None,
            attributes=attrs,
        )
        array[:] = data.astype(object) if text else data


def write_ids(group: zarr.Group, name: str, ids: list[str], id_dtype: str) -> None:
    """Write basin ids as ``str``/``object`` (vlen text on disk), ``U``, ``S`` or a number type."""
    if id_dtype in ("str", "object"):
        data: NDArray[Any] = np.array(ids, dtype=object)
    elif id_dtype == "U":
        data = np.array(ids, dtype=str)
    elif id_dtype == "S":
        data = np.array([text.encode() for text in ids])
    else:
        data = np.array([float(text) for text in ids]).astype(id_dtype)
    write_vector(group, name, data, {}, fixed_width=id_dtype == "U")


def consolidate(path: Path) -> None:
    """Write consolidated metadata."""
    with warnings.catch_warnings():
        # zarr says that consolidated metadata is not part of format 3 yet; xarray writes it.
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        zarr.consolidate_metadata(str(path))


def _full(date: str) -> str:
    return date if "T" in date else f"{date}T00:00:00"
