"""What happens to stores after they were indexed: one function per kind, and the words that name it."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from build_here import build_here
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config
from synthetic import ArrayLayout, write_attributes, write_store
from synthetic_coords import consolidate, write_ids

STEPS = 24


@dataclass(frozen=True, kw_only=True)
class Changing:
    """A pair of stores, a configuration and an index of them."""

    folder: Path
    config: Config
    index: Path

    @property
    def series(self) -> zarr.Group:
        """The time series store, open for writing."""
        return zarr.open_group(str(self.folder / "s.zarr"), mode="r+", use_consolidated=False)

    @property
    def attributes(self) -> zarr.Group:
        """The attributes store, open for writing."""
        return zarr.open_group(str(self.folder / "a.zarr"), mode="r+", use_consolidated=False)


def write_changing(folder: Path, zarr_format: int = 2, **section: Any) -> Changing:
    """Write ``s.zarr`` and ``a.zarr``: rain as stored, packed flow in m3/s over the basins' areas; and index them."""
    store = write_store(
        folder / "s.zarr",
        basins=3,
        steps=STEPS,
        zarr_format=zarr_format,
        variables={
            "rain": ArrayLayout(chunks=(2, 10), attrs={"units": "mm/day"}),
            "flow": ArrayLayout(
                dtype="int16", scale_factor=0.5, fill_value=-1, missing_as=-9.0, attrs={"units": "m3/s"}
            ),
        },
        missing={"flow": lambda basins, steps: np.arange(basins * steps).reshape(basins, steps) % 17 == 3},
    )
    columns = {"area": [1.0, 2.0, 4.0], "slope": [3.0, 1.0, 2.0]}
    write_attributes(folder / "a.zarr", store.basin_ids, columns, {"area": "km2"}, zarr_format=zarr_format)
    names = {
        "relevant": {"rain": "rain", "warmth": {"physical": "warmth", "required": False}},
        "target": {"flow": {"physical": "flow", "per_area": "area", "unit": "mm/day"}},
        "constant": {"slope": "slope", "height": {"physical": "height", "required": False}},
    }
    given = {"t_range_train": ["2000-01-06", "2000-01-15"], "t_range_test": ["2000-01-16", "2000-01-22"], **section}
    config = parse_config(
        {
            "datasets": {
                "d": {
                    "timeseries": str(store.path),
                    "attributes": str(folder / "a.zarr"),
                    "variables": names,
                    **given,
                }
            },
            "window": {"hindcast_length": 3, "forecast_length": 0, "warmup_length": 2},
            "normalization": {"method": "none"},
        }
    )
    return Changing(folder=folder, config=config, index=build_here(config, folder / "index"))


def edit(array: Any, **attributes: Any) -> None:
    """Set attributes of an array."""
    array.attrs.update(attributes)


def swap(array: Any) -> None:
    """Write an array's values in reverse order."""
    array[:] = np.asarray(array)[::-1]


def rename(stores: Changing) -> None:
    """Rename the second basin."""
    ids = np.asarray(stores.series["basin"]).astype(object)
    ids[1] = "99"
    basin: Any = stores.series["basin"]
    basin[:] = ids


def refill(stores: Changing) -> None:
    """Change the storage fill value of ``flow`` in its metadata document."""
    folder = stores.folder / "s.zarr" / "flow"
    path = next(p for p in (folder / ".zarray", folder / "zarr.json") if p.exists())
    path.write_text(json.dumps({**json.loads(path.read_text()), "fill_value": 5}))


def rewrite(group: zarr.Group, name: str, **other: Any) -> None:
    """Write an array again with the same values and attributes but another type, chunks or codec."""
    array: Any = group[name]
    values, attributes = np.asarray(array), dict(array.attrs)
    names = getattr(array.metadata, "dimension_names", None)
    given = {"shape": values.shape, "chunks": array.chunks, "dtype": values.dtype, "fill_value": array.fill_value}
    del group[name]
    written = group.create_array(name, attributes=attributes, dimension_names=names, **{**given, **other})
    written[:] = values


def append(stores: Changing) -> None:
    """Write five more days."""
    group: Any = stores.series
    for name in ("rain", "flow"):
        group[name].resize((3, STEPS + 5))
        group[name][:, STEPS:] = 7
    group["time"].resize((STEPS + 5,))
    group["time"][:] = np.arange(STEPS + 5)


def add(group: zarr.Group, name: str, like: str) -> None:
    """Write an array that was not there, as a copy of another one."""
    array: Any = group[like]
    names = getattr(array.metadata, "dimension_names", None)
    given = {"shape": array.shape, "chunks": array.chunks, "dtype": array.dtype, "fill_value": array.fill_value}
    group.create_array(name, attributes=dict(array.attrs), dimension_names=names, **given)[:] = np.asarray(array)


def scaled(array: Any, factor: float) -> None:
    """Multiply all values of an array."""
    array[:] = np.asarray(array) * factor


def touch(folder: Path) -> None:
    """Give every file of a folder a later time."""
    for path in folder.rglob("*"):
        if path.is_file():
            stat = path.stat()
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))


def other_unit(stores: Changing) -> None:
    """Count the same times in hours."""
    time: Any = stores.series["time"]
    time[:] = np.asarray(time) * 24
    edit(time, units="hours since 2000-01-01")


def bytes_for_ids(stores: Changing) -> None:
    """Store the same basin ids as bytes of fixed width."""
    group = stores.series
    ids = [str(i) for i in np.asarray(group["basin"]).tolist()]
    del group["basin"]
    write_ids(group, "basin", ids, "S")


def name_all(stores: Changing) -> None:
    """Describe every array."""
    for group in (stores.series, stores.attributes):
        for _, array in group.arrays():
            edit(array, long_name="described")


def reconsolidate(stores: Changing) -> None:
    """Write consolidated metadata."""
    for name in ("s.zarr", "a.zarr"):
        consolidate(stores.folder / name)


def copied(stores: Changing) -> None:
    """Copy the attributes store away and back, so that all its files are new."""
    shutil.copytree(stores.folder / "a.zarr", stores.folder / "b.zarr", copy_function=shutil.copyfile)
    shutil.rmtree(stores.folder / "a.zarr")
    shutil.copytree(stores.folder / "b.zarr", stores.folder / "a.zarr", copy_function=shutil.copyfile)


Change = Callable[[Changing], object]

CHANGES: dict[str, tuple[Change, str]] = {
    "reversed_ids": (
        lambda s: swap(s.series["basin"]),
        "array basin: basin ids differ: row 0 was '01000500', is '01002500'",
    ),
    "renamed_id": (rename, "array basin: basin ids differ: row 1 was '01001500', is '99'"),
    "time_shifted": (
        lambda s: edit(s.series["time"], units="days since 2000-01-03"),
        "times differ: stored step 0 was 2000-01-01T00:00:00, is 2000-01-03T00:00:00",
    ),
    "calendar": (
        lambda s: edit(s.series["time"], calendar="noleap"),
        "array time: calendar was proleptic_gregorian, is noleap",
    ),
    "scale_factor": (lambda s: edit(s.series["flow"], scale_factor=0.25), "attribute scale_factor was 0.5, is 0.25"),
    "add_offset": (lambda s: edit(s.series["rain"], add_offset=2.0), "attribute add_offset was not there, is 2.0"),
    "missing_value": (lambda s: edit(s.series["rain"], missing_value=5), "attribute missing_value was not there, is 5"),
    "_FillValue": (lambda s: edit(s.series["rain"], _FillValue=5.0), "attribute _FillValue was not there, is 5.0"),
    "fill_value": (refill, "array flow: fill_value was -1, is 5"),
    "units": (lambda s: edit(s.series["flow"], units="L/s"), 'attribute units was "m3/s", is "L/s"'),
    "dtype": (lambda s: rewrite(s.series, "rain", dtype="float64"), "array rain: dtype was float32, is float64"),
    "codec": (lambda s: rewrite(s.series, "rain", compressors=None), "array rain: codecs was"),
    "chunks": (lambda s: rewrite(s.series, "rain", chunks=(3, 8)), "array rain: chunks was"),
    "appended": (append, "array rain: shape was (3, 24), is (3, 29)"),
    "array_gone": (lambda s: s.series.__delitem__("rain"), "array rain: the array is gone"),
    "array_new": (lambda s: add(s.series, "warmth", "rain"), "array warmth: the array is new"),
    "static_values": (
        lambda s: scaled(s.attributes["slope"], 10),
        "array slope: stored values differ: basin '01000500' was 3, is 30",
    ),
    "static_order": (lambda s: swap(s.attributes["basin"]), "array basin: basin ids or their order differ"),
    "static_attribute": (lambda s: edit(s.attributes["slope"], scale_factor=2.0), "attribute scale_factor was not"),
    "static_gone": (lambda s: s.attributes.__delitem__("slope"), "array slope: the array is gone"),
    "static_new": (lambda s: add(s.attributes, "height", "slope"), "array height: the array is new"),
    "area_values": (
        lambda s: scaled(s.attributes["area"], 3),
        "array area: stored values differ: basin '01000500' was 1, is 3",
    ),
    "area_unit": (lambda s: edit(s.attributes["area"], units="ha"), 'attribute units was "km2", is "ha"'),
}
"""Name → what happens, and words that must name it."""

HARMLESS: dict[str, Change] = {
    "long_name": name_all,
    "history": lambda s: s.series.attrs.update(history="copied"),
    "reconsolidated": reconsolidate,
    "touched_time": lambda s: touch(s.folder / "s.zarr" / "time"),
    "touched_ids": lambda s: touch(s.folder / "s.zarr" / "basin"),
    "copied_attributes": copied,
    "times_in_another_unit": other_unit,
    "ids_as_bytes": bytes_for_ids,
    "statics_in_other_chunks": lambda s: rewrite(s.attributes, "slope", chunks=(1,), compressors=None),
}
"""Name → what changes no value."""
