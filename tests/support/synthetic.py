"""Small Zarr stores whose values encode their own coordinates, with the truth beside them.

`write_store` makes a time series store in any layout that Headrace must read, `write_attributes`
its statics. `encode` and `decode_value` turn a place into a number and back. Random layouts for
Hypothesis are in `layouts`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from encoding import MAX_BASINS, MAX_DATASETS, MAX_STEPS, MAX_VARIABLES, Place, decode_value, encode
from synthetic_arrays import MAX_PACKED, ArrayLayout, WrittenArray, write_array
from synthetic_coords import TimeAxis, consolidate, write_ids, write_vector

__all__ = [
    "MAX_BASINS",
    "MAX_DATASETS",
    "MAX_PACKED",
    "MAX_STEPS",
    "MAX_VARIABLES",
    "ArrayLayout",
    "Place",
    "SyntheticStore",
    "basin_ids",
    "decode_value",
    "encode",
    "write_attributes",
    "write_store",
]

Missing = NDArray[np.bool_] | Callable[[int, int], NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class SyntheticStore:
    """A written store and what a right reader finds in it. Arrays are ``[basin, step]``."""

    path: Path
    zarr_format: int
    basin_ids: tuple[str, ...]
    variables: tuple[str, ...]
    steps: int
    step_seconds: int
    positions: NDArray[np.int64]
    """int64 [steps]: steps of `step_seconds` since `time_start`; jumps where the axis has a gap."""
    segments: tuple[tuple[int, int], ...]
    """Half-open stretches of the time axis without a gap, in steps."""
    time_start: str
    layouts: dict[str, ArrayLayout]
    arrays: dict[str, WrittenArray]

    @property
    def truth(self) -> dict[str, NDArray[np.float32]]:
        """float32 [basin, step] per variable, NaN missing, absent chunks with fill 0 are 0."""
        return {name: array.truth for name, array in self.arrays.items()}

    @property
    def observed(self) -> dict[str, NDArray[np.bool_]]:
        """bool [basin, step] per variable."""
        return {name: ~np.isnan(array.truth) for name, array in self.arrays.items()}

    @property
    def times(self) -> NDArray[np.datetime64]:
        """datetime64[s] [steps]; right for the standard calendar only."""
        start = np.datetime64(self.time_start, "s")
        return start + self.positions * np.timedelta64(self.step_seconds, "s")


def basin_ids(count: int) -> list[str]:
    """Return `count` eight-digit ids with a leading zero: 01000500, 01001500, …"""
    return [f"{1_000_500 + 1000 * row:08d}" for row in range(count)]


def write_store(
    path: Path | str,
    *,
    basins: int | Sequence[str] = 3,
    steps: int = 20,
    variables: Sequence[str] | Mapping[str, ArrayLayout] = ("precipitation", "streamflow"),
    zarr_format: int = 2,
    dims: Any = None,
    chunks: Any = None,
    shards: Any = None,
    dtype: Any = None,
    fill_value: Any = ...,
    missing: Mapping[str, Missing] | None = None,
    missing_as: Any = None,
    flag_attribute: Any = ...,
    scale_factor: Any = None,
    add_offset: Any = None,
    absent_chunks: Mapping[str, Sequence[tuple[int, ...]]] | None = None,
    attrs: Mapping[str, Mapping[str, Any]] | None = None,
    group_attrs: Mapping[str, Any] | None = None,
    time_start: str = "2000-01-01",
    step_seconds: int = 86_400,
    time_unit: str = "days",
    time_since: str | None = None,
    calendar: str = "proleptic_gregorian",
    gaps: Mapping[int, int] | None = None,
    time_values: ArrayLike | None = None,
    time_chunk: int | None = None,
    id_dtype: str = "str",
    dataset: int = 0,
    consolidated: bool = False,
) -> SyntheticStore:
    """Write a store whose values are `encode(basin, step, variable, dataset)`.

    Parameters
    ----------
    basins, steps
        Number of basins (or their ids) and of stored time steps.
    variables
        Array names in the order that gives each its variable number, or a mapping name → layout.
    dims, chunks, shards, dtype, fill_value, missing_as, flag_attribute, scale_factor, add_offset
        Fields of `ArrayLayout`: one value for all arrays, or a dict per variable. Chunk shapes
        are in the order of `dims` and are cut to the array's extent.
    missing
        Per variable a bool [basin, step], or a function ``(basins, steps) -> bool [basin, step]``.
    absent_chunks
        Per variable the keys (in the order of `dims`) of stored objects to delete.
    attrs, group_attrs
        Attributes per array, and of the group.
    time_start, step_seconds, time_unit, time_since, calendar
        The time axis: int64 in ``<time_unit> since <time_since>`` (default: since `time_start`).
    gaps
        ``{step: missing}``: after `step` the axis jumps over `missing` absent time steps.
    time_values
        Stored time values as they are, instead of all that (unsorted, duplicate, …).
    id_dtype
        ``str`` (vlen text, which is also what ``object`` means on disk), ``U``, ``S``, ``int64``.
    dataset
        Goes into every value, so that joint data sets can be told apart.
    """
    path = Path(path)
    ids = basin_ids(basins) if isinstance(basins, int) else [str(name) for name in basins]
    group = zarr.open_group(str(path), mode="w", zarr_format=_format(zarr_format), attributes=dict(group_attrs or {}))
    given = {
        "dims": dims,
        "chunks": chunks,
        "shards": shards,
        "dtype": dtype,
        "missing_as": missing_as,
        "scale_factor": scale_factor,
        "add_offset": add_offset,
        "absent_chunks": absent_chunks,
        "attrs": attrs,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if fill_value is not ...:
        given["fill_value"] = fill_value
    if flag_attribute is not ...:
        given["flag_attribute"] = flag_attribute

    names = list(variables)
    layouts: dict[str, ArrayLayout] = {}
    arrays: dict[str, WrittenArray] = {}
    for number, name in enumerate(names):
        layout = variables[name] if isinstance(variables, Mapping) else ArrayLayout()
        layout = _override(layout, name, given, len(ids), steps)
        shape = (len(ids), steps)
        holes: Any = (missing or {}).get(name, np.zeros(shape, dtype=bool))
        holes = np.asarray(holes(*shape) if callable(holes) else holes, dtype=bool)
        values = encode(np.arange(len(ids))[:, None], np.arange(steps), number, dataset)
        layouts[name] = layout
        arrays[name] = write_array(group, name, values, holes, layout, path)

    axis = TimeAxis(
        steps=steps,
        start=time_start,
        step_seconds=step_seconds,
        unit=time_unit,
        since=time_since or time_start,
        calendar=calendar,
        gaps=dict(gaps or {}),
    )
    stored_time = axis.values() if time_values is None else np.asarray(time_values)
    write_vector(group, "time", stored_time, axis.attrs(), chunk=time_chunk)
    write_ids(group, "basin", ids, id_dtype)
    if consolidated:
        consolidate(path)
    return SyntheticStore(
        path=path,
        zarr_format=zarr_format,
        basin_ids=tuple(ids),
        variables=tuple(names),
        steps=steps,
        step_seconds=step_seconds,
        positions=axis.positions(),
        segments=axis.segments(),
        time_start=time_start,
        layouts=layouts,
        arrays=arrays,
    )


def write_attributes(
    path: Path | str,
    ids: Sequence[str],
    columns: Mapping[str, ArrayLike],
    units: Mapping[str, str] | None = None,
    *,
    zarr_format: int = 2,
    id_dtype: str = "str",
    attrs: Mapping[str, Mapping[str, Any]] | None = None,
    consolidated: bool = False,
) -> Path:
    """Write an attributes store: one array over `basin` per column, text columns included."""
    path = Path(path)
    group = zarr.open_group(str(path), mode="w", zarr_format=_format(zarr_format))
    for name, column in columns.items():
        extra = dict((attrs or {}).get(name, {}))
        if units and name in units:
            extra["units"] = units[name]
        write_vector(group, name, np.asarray(column), extra, dim="basin")
    write_ids(group, "basin", list(ids), id_dtype)
    if consolidated:
        consolidate(path)
    return path


def _format(number: int) -> Literal[2, 3]:
    if number not in (2, 3):
        raise ValueError(f"zarr_format must be 2 or 3, got {number}")
    return 2 if number == 2 else 3


def _override(layout: ArrayLayout, name: str, given: Mapping[str, Any], num_basins: int, steps: int) -> ArrayLayout:
    changes: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, Mapping):
            if name not in value:
                continue
            value = value[name]
        changes[key] = tuple(value) if isinstance(value, list) else value
    layout = replace(layout, **changes)
    if layout.chunks and not layout.shards:
        sizes = {"basin": num_basins, "time": steps}
        cut = (min(size, max(1, sizes.get(dim, 1))) for size, dim in zip(layout.chunks, layout.dims, strict=True))
        layout = replace(layout, chunks=tuple(cut))
    return layout
