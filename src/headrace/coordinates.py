"""The two coordinates of a store, read alike by both phases: basin ids as text, times as seconds of their calendar.

Ids may be stored as any kind of text. Numbers are refused: an integer has lost its leading zeros, a float its digits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.chunk_length import refuse_cut_of
from headrace.members import array_names, find_member
from headrace.objects.fetch import Fetch, FileFetch
from headrace.objects.zarr_store import remote_store
from headrace.schemas.dates import decode_seconds, missing_times
from headrace.schemas.errors import ConfigError, SourceError, describe
from headrace.store import BASIN_DIM, TIME_DIM

NO_TIME = np.iinfo(np.int64).min
"""Stands for a missing time among seconds."""
_UNREADABLE = OSError, EOFError, RuntimeError, ValueError, TypeError, KeyError


def read_vector(group: zarr.Group, uri: str, name: str) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the values and attributes of a one-dimensional coordinate."""
    array = find_member(group, uri, name)
    if array is None:
        got = f"arrays {', '.join(array_names(group)[:12]) or 'none'}"
        raise SourceError(
            describe(
                f"store has no coordinate {name}",
                where=uri,
                expected=f"an array {name!r} with dimension {name}",
                got=got,
                fix=f"write the coordinate, or rename the store's dimension to {name}",
            )
        )
    if array.ndim != 1:
        raise SourceError(
            describe(
                f"coordinate {name} is not a vector",
                where=f"{uri}, array {name}",
                expected="one dimension",
                got=f"shape {array.shape}",
                fix="write it with one dimension",
            )
        )
    try:
        values = _whole(array, uri, name)
    except _UNREADABLE as error:
        raise SourceError(
            describe(
                f"coordinate {name} cannot be read",
                where=f"{uri}, array {name}",
                expected="readable chunks",
                got=f"{type(error).__name__}: {error}",
                fix="write the coordinate again",
            )
        ) from error
    return values, dict(array.attrs)


def _whole(array: zarr.Array[Any], uri: str, name: str) -> NDArray[Any]:
    """Read a vector whose objects are all there and whole; an absent one may be a single entry that is the fill value.

    Raises
    ------
    EOFError
        An object is absent or was cut.
    """
    size = max((array.shards or array.chunks)[0], 1)
    keys = [f"{name}/{array.metadata.encode_chunk_key((i,))}" for i in range(-(-array.shape[0] // size))]
    remote = remote_store(array)
    fetch = FileFetch(uri) if remote is None else remote.fetch(keys)
    while True:
        try:
            return _fetched(array, size, keys, fetch)
        except _UNREADABLE:
            if not fetch.again(keys):
                raise


def _fetched(array: zarr.Array[Any], size: int, keys: list[str], fetch: Fetch) -> NDArray[Any]:
    for number, key in enumerate(keys):
        head = fetch.head(key)
        while head is None and fetch.again([key]):
            head = fetch.head(key)
        if head is None and min(size, array.shape[0] - number * size) > 1:
            raise EOFError(f"no chunk {key}")
        refuse_cut_of(array, *(head or (None, 0)))
    with fetch.serving():
        return np.asarray(array[:])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTimes:
    """The time coordinate as stored.

    Parameters
    ----------
    values
        Numbers [stored steps].
    units, calendar
        CF texts.
    where
        Store and array, for messages.
    """

    values: NDArray[Any]
    units: str
    calendar: str
    where: str

    def seconds(self) -> NDArray[np.int64]:
        """Return seconds since 1970-01-01 in the calendar, int64 [stored steps]; ``NO_TIME`` where there is none."""
        lacking = missing_times(self.values)
        # Any time will do where one is missing: its number is replaced below.
        filled = np.where(lacking, self.values[~lacking][:1] if not lacking.all() else 0, self.values)
        seconds = decode_seconds(filled.astype(self.values.dtype), self.units, self.calendar, self.where)
        return np.where(lacking, NO_TIME, seconds)


def read_times(group: zarr.Group, uri: str) -> StoredTimes:
    """Return the time coordinate of a store.

    Raises
    ------
    SourceError
        The coordinate lacks or has no CF units.
    """
    values, attributes = read_vector(group, uri, TIME_DIM)
    where = f"{uri}, array {TIME_DIM}"
    if values.dtype.kind == "M":
        unit, count = np.datetime_data(values.dtype)
        values = values.astype(np.int64) * count if count != 1 else values.astype(np.int64)
        attributes = {"units": f"{unit} since 1970-01-01", "calendar": "proleptic_gregorian"}
    units = attributes.get("units")
    if not isinstance(units, str):
        raise SourceError(
            describe(
                "time coordinate has no unit",
                where=where,
                expected="a CF attribute such as units = 'days since 1980-01-01'",
                got=f"units = {units!r}",
                fix="write the attributes units and calendar",
            )
        )
    calendar = str(attributes.get("calendar", "standard")).lower()
    return StoredTimes(values=values, units=units, calendar=calendar, where=where)


def read_basin_ids(group: zarr.Group, uri: str, *, id_width: int | None, key: str) -> list[str]:
    """Return the basin ids of a store as text, in store order, duplicates included.

    Parameters
    ----------
    group, uri
        Open store and its locator.
    id_width
        Digits to which numeric ids are padded with zeros, or None.
    key
        Dotted path of the data set in the configuration, for messages.
    """
    values, _ = read_vector(group, uri, BASIN_DIM)
    where = f"{uri}, array {BASIN_DIM}"
    if values.dtype.kind in "iu":
        return _ids_from_integers(values, where, id_width, key)
    if values.dtype.kind not in "OUST":
        got = f"{values.dtype}, first value {values[0].item()!r}" if values.size else str(values.dtype)
        raise SourceError(
            describe(
                "basin ids are not text",
                where=where,
                expected="text ids",
                got=got,
                fix="write the ids as text: a float cannot hold an id (leading zeros and last digits are lost)",
            )
        )
    ids = [_text(value) for value in values.tolist()]
    blank = [i for i, text in enumerate(ids) if not text]
    if blank:
        raise SourceError(
            describe(
                "basin id is empty",
                where=f"{where}, row {blank[0]}",
                expected="an id",
                got="''",
                fix="name every basin of the store",
            )
        )
    return [pad_id(text, id_width) for text in ids]


def pad_id(text: str, id_width: int | None) -> str:
    """Pad an id of digits only with zeros to ``id_width``; leave every other id as it is."""
    return text.zfill(id_width) if id_width is not None and text.isdigit() else text


def _text(value: object) -> str:
    return (value.decode("utf-8") if isinstance(value, bytes) else str(value)).strip()


def _ids_from_integers(values: NDArray[Any], where: str, id_width: int | None, key: str) -> list[str]:
    texts = [str(v) for v in values.tolist()]
    if id_width is None:
        width = max(max((len(t) for t in texts), default=1) + 1, 8)
        example = texts[0] if texts else "1013500"
        raise ConfigError(
            describe(
                "basin ids are stored as integers, which have no leading zeros",
                where=where,
                expected="text ids, or the number of digits an id has",
                got=f"{values.dtype}; the first id is {example!r} or {example.zfill(width)!r}",
                fix=f"set {key}.id_width: {width} if ids have {width} digits, or 1 if {example!r} is the id as written",
            )
        )
    return [pad_id(t, id_width) for t in texts]
