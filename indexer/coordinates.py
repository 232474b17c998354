"""Read the two coordinates of a store once: basin ids as text, time as regular segments.

Ids may be stored as any kind of text. Numbers are refused: an integer has lost its leading zeros, a float its digits.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.indexer.time_order import FixTime, mended
from headrace.schemas.errors import ConfigError, SourceError, describe
from headrace.schemas.time_axis import TimeAxis, find_segments
from headrace.store import BASIN_DIM, TIME_DIM, array_names


def read_vector(group: zarr.Group, uri: str, name: str) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the values and attributes of a one-dimensional coordinate."""
    array = group.get(name)
    if not isinstance(array, zarr.Array):
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
        values = np.asarray(array[:])
    except (OSError, RuntimeError, ValueError, TypeError, KeyError) as error:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTime:
    """The time coordinate of a store.

    Parameters
    ----------
    axis
        Regular segments, in the order of the index.
    order
        int64 [steps of the index], stored step of each; None unless the axis was mended.
    num_stored
        Stored steps.
    """

    axis: TimeAxis
    order: NDArray[np.int64] | None
    num_stored: int


def read_time(group: zarr.Group, uri: str, fix_time: FixTime = "none") -> StoreTime:
    """Return the time axis of a store, mended if asked for.

    Raises
    ------
    SourceError
        The coordinate lacks, has no CF units, or is not a strictly increasing multiple of one step.
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
    seconds, order = mended(values, units, calendar, where, fix_time)
    return StoreTime(axis=find_segments(seconds, calendar, where), order=order, num_stored=values.size)


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
        got = f"{values.dtype}, first value {values[0]!r}" if values.size else str(values.dtype)
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


def unique_rows(ids: list[str], *, policy: str, where: str, key: str) -> dict[str, int]:
    """Return id → store row in store order, one row per id.

    Raises
    ------
    ConfigError
        An id occurs more than once and the policy is ``error``.
    """
    repeated = {text: n for text, n in Counter(ids).items() if n > 1}
    if repeated and policy == "error":
        named = ", ".join(f"{text} ({n} rows)" for text, n in list(repeated.items())[:10])
        more = f" and {len(repeated) - 10} more" if len(repeated) > 10 else ""
        raise ConfigError(
            describe(
                "basins occur more than once",
                where=where,
                expected="one row per basin",
                got=f"{len(ids)} rows for {len(set(ids))} basins: {named}{more}",
                fix=f"mend the store, or set {key}.duplicate_basins: first (or last)",
            )
        )
    rows: dict[str, int] = {}
    for row, text in enumerate(ids):
        if text not in rows or policy == "last":
            rows[text] = row
    return dict(sorted(rows.items(), key=lambda item: item[1]))
