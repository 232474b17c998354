"""Compare an index with the metadata, coordinates and attributes of its stores as they are now.

Chunks of time series are not looked at: whoever reads one compares it with table ``chunks``. A coordinate or an
attribute is read only where its metadata or its files are not as they were.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import zarr
from numpy.typing import NDArray

from headrace.array_metadata import MEANING, differences
from headrace.coordinates import NO_TIME, StoredTimes, read_basin_ids, read_times
from headrace.objects import is_remote
from headrace.objects.at_once import at_once, begin
from headrace.objects.zarr_store import ask_ahead
from headrace.open_store import open_group
from headrace.schemas.config import DatasetConfig
from headrace.schemas.dates import iso_text, parse_date
from headrace.schemas.errors import HeadraceError, StorageError, StoreNotFoundError, describe
from headrace.schemas.storage_config import StorageConfig
from headrace.schemas.time_axis import axis_from_rows
from headrace.schemas.variables import rule_from_json
from headrace.snapshot import ArraySnapshot, StoreKind, ids_content, look_at, static_content, times_content
from headrace.static_rows import AREA_PREFIX, StaticRows, areas_of, read_static_rows
from headrace.store import BASIN_DIM, open_array

Lookup = Callable[[str], pa.Table]
"""Name of a table → its rows of one data set, sorted by the table's key."""

_NAMED = 6
"""Changes that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedDataset:
    """What an index knows of one data set.

    Parameters
    ----------
    index
        Folder of the index, or its URL.
    dataset_id, config
        The data set.
    storage
        How object stores are reached.
    tolerate_damage
        Whether a chunk that cannot be decoded counts as missing.
    arrays
        Its rows of table ``arrays``.
    table
        Looks up rows of the tables ``datasets``, ``segments``, ``time_order``, ``basins`` and ``statics``; asked only
        where something changed, to say what.
    """

    index: Path | str
    dataset_id: str
    config: DatasetConfig
    storage: StorageConfig
    tolerate_damage: bool
    arrays: tuple[ArraySnapshot, ...]
    table: Lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that is not as it was indexed: data set, store, array, and what differs in words."""

    dataset_id: str
    uri: str
    array: str
    words: str

    def __str__(self) -> str:
        """Say where and what."""
        return f"{self.dataset_id}: {self.uri}, array {self.array}: {self.words}"


def snapshots_of(table: pa.Table) -> tuple[ArraySnapshot, ...]:
    """Return rows of table ``arrays`` as snapshots."""
    names = ("store", "array", "kind", "metadata", "objects", "content", "variable", "decode_rule")
    return tuple(ArraySnapshot(**row) for row in table.select(names).to_pylist())


def stale_message(changes: list[Change], index: Path | str) -> str:
    """Return the message of a stale index: what changed and how to refresh."""
    more = f"; and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
    return describe(
        "stores changed after the index was built",
        where=str(index),
        expected="metadata, coordinates and attributes as they were indexed",
        got="; ".join(str(c) for c in changes[:_NAMED]) + more,
        fix=f"run headrace build-index CONFIG --out {index} again; it rescans only what changed",
    )


def find_changes(indexed: IndexedDataset, store: StoreKind) -> list[Change]:
    """Compare one store of a data set with the index.

    Raises
    ------
    SourceError
        The store is gone or cannot be opened.
    """
    before = [a for a in indexed.arrays if a.store == store]
    uri = indexed.config.timeseries if store == "timeseries" else indexed.config.attributes
    if not before or uri is None:
        return []
    group = open_group(uri, indexed.storage)
    ask_ahead(group, {a.array for a in before}, listed={a.array for a in before if a.kind != "series"})
    found = [
        Change(dataset_id=indexed.dataset_id, uri=uri, array=snapshot.array, words=words)
        for snapshot in before
        for words in _array_changes(indexed, group, uri, snapshot)
    ]
    return list(dict.fromkeys(found))  # one array may stand for several attributes


def find_all_changes(indexed: IndexedDataset) -> list[Change]:
    """Compare both stores; an attributes store that is gone is no change, because the index keeps its values."""
    of_attributes = begin(partial(find_changes, indexed, "attributes"), remote=is_remote(indexed.config.timeseries))
    changes = find_changes(indexed, "timeseries")
    try:
        return changes + of_attributes()
    except StoreNotFoundError:
        return changes


def changes_of_all(datasets: Sequence[IndexedDataset]) -> list[Change]:
    """Compare the stores of several data sets; raises as :func:`find_changes` for the first that does."""
    remote = any(is_remote(d.config.timeseries) for d in datasets)
    return [
        change for found in at_once([partial(find_all_changes, d) for d in datasets], remote=remote) for change in found
    ]


def _array_changes(indexed: IndexedDataset, group: zarr.Group, uri: str, before: ArraySnapshot) -> Iterator[str]:
    try:
        now = look_at(group, uri, before.store, before.array, before.kind)
    except StorageError:
        raise  # a fault on the way is no change of the store
    except (HeadraceError, OSError, ValueError, TypeError, KeyError) as error:
        yield f"cannot be looked at: {type(error).__name__}: {' '.join(str(error).split())}"
        return
    if not now.metadata or not before.metadata:
        if now.metadata != before.metadata:
            yield "the array is gone" if before.metadata else "the array is new"
    elif before.kind == "series":
        yield from differences(before.metadata, now.metadata)
    elif (before.metadata, before.objects) != (now.metadata, now.objects):
        try:
            yield from _value_changes(indexed, group, uri, before, now)
        except StorageError:
            raise
        except HeadraceError as error:
            yield f"cannot be read as before: {' '.join(str(error).split())}"


def _value_changes(
    indexed: IndexedDataset, group: zarr.Group, uri: str, before: ArraySnapshot, now: ArraySnapshot
) -> Iterator[str]:
    """Read a coordinate or an attribute whose files or metadata differ."""
    if before.kind == "static":
        meaning = differences(before.metadata, now.metadata, MEANING)
        stored = open_array(group, uri, before.array, dims=(BASIN_DIM,))
        if meaning or stored is None:
            yield from meaning or ["the array is gone"]
            return
        rows = read_static_rows(stored, "missing" if indexed.tolerate_damage else "error")
        if static_content(rows) != before.content:
            yield _static_words(indexed, group, uri, before, rows)
        return
    if before.kind == "basin":
        ids = _ids(indexed, group, uri)
        content, words = ids_content(ids), _ids_words(indexed, before, ids)
    else:
        times = read_times(group, uri)
        content, words = times_content(times), _times_words(indexed, times)
    if content != before.content:
        yield from differences(before.metadata, now.metadata, ("shape", "dtype", "attributes"))
        yield words


def _ids(indexed: IndexedDataset, group: zarr.Group, uri: str) -> list[str]:
    return read_basin_ids(group, uri, id_width=indexed.config.id_width, key=f"datasets.{indexed.dataset_id}")


def _ids_words(indexed: IndexedDataset, before: ArraySnapshot, ids: list[str]) -> str:
    if before.store == "timeseries":
        basins = indexed.table("basins")
        pairs = zip(basins["basin_id"].to_pylist(), basins["store_row"].to_pylist(), strict=True)
        for old, row in pairs:
            new = ids[row] if row < len(ids) else "not there"
            if new != old:
                return f"basin ids differ: row {row} was {old!r}, is {new!r}"
    return "basin ids or their order differ"


def _times_words(indexed: IndexedDataset, times: StoredTimes) -> str:
    row = indexed.table("datasets").to_pylist()[0]
    segments = [
        (s["start"], s["stop"], parse_date(s["time_start"], row["calendar"])[0])
        for s in indexed.table("segments").to_pylist()
    ]
    old, new = axis_from_rows(segments, row["step_seconds"], row["calendar"]).seconds(), times.seconds()
    order = indexed.table("time_order")["store_step"].to_numpy()
    places = order if order.size else np.arange(old.size)
    known = places < new.size
    same = known & (new[np.where(known, places, 0)] == old) if new.size else known
    if row["calendar"] != times.calendar:
        return f"calendar was {row['calendar']}, is {times.calendar}"
    if same.all():
        return "stored times that the index does not use differ"
    step = int(np.argmin(same))
    was, now = iso_text(int(old[step]), row["calendar"]), _moment(new, int(places[step]), times.calendar)
    return f"times differ: stored step {places[step]} was {was}, is {now}"


def _moment(seconds: NDArray[np.int64], step: int, calendar: str) -> str:
    if step >= seconds.size:
        return "not there"
    return "no time" if seconds[step] == NO_TIME else iso_text(int(seconds[step]), calendar)


def _static_words(indexed: IndexedDataset, group: zarr.Group, uri: str, before: ArraySnapshot, rows: StaticRows) -> str:
    """Name the first basin whose value is another one."""
    values = rows.decoded(rule_from_json(before.decode_rule))
    if before.variable.startswith(AREA_PREFIX):
        values = areas_of(values)
    place = {name: row for row, name in enumerate(_ids(indexed, group, uri))}
    basins = indexed.table("basins")["basin_id"].to_pylist()
    for row in indexed.table("statics").to_pylist():
        if row["variable"] != before.variable:
            continue
        basin = basins[row["basin"]]
        now = values[place[basin]] if basin in place else np.nan
        if not np.array_equal(now, row["value"], equal_nan=True):
            return f"stored values differ: basin {basin!r} was {row['value']:g}, is {now:g}"
    return "stored values differ, or their order"
