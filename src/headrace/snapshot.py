"""What the arrays of a store looked like when it was indexed: one row of table ``arrays`` each.

Time series are described by their metadata; their chunks are in table ``chunks``. Coordinates and attributes, of which
the index keeps the values, have a digest of these too, so that a copied or touched file is no change.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import zarr

from headrace.array_metadata import TIME_ATTRIBUTES, VALUE_ATTRIBUTES, metadata_text
from headrace.coordinates import StoredTimes
from headrace.members import find_member
from headrace.objects import ObjectStat
from headrace.static_rows import StaticRows
from headrace.store import stat_object

DIGEST_LENGTH = 24
"""Hex digits kept of a SHA-256: 96 bits, so that 10⁹ scan units collide with probability 10⁻¹¹."""

StoreKind = Literal["timeseries", "attributes"]
ArrayKind = Literal["series", "basin", "time", "static"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySnapshot:
    """One array as it was.

    Parameters
    ----------
    store
        Which store of the data set.
    array
        Its name there.
    kind
        What the index takes from it.
    metadata
        Text of :func:`headrace.array_metadata.metadata_text`; '' for an optional array that was not there.
    objects
        Digest of size and time of its stored objects; '' for time series.
    content
        Digest of what the index takes from its values; '' for time series.
    variable, decode_rule
        Of an attribute: its name in table ``statics``, and what its values mean, as JSON; '' otherwise.
    """

    store: StoreKind
    array: str
    kind: ArrayKind
    metadata: str
    objects: str = ""
    content: str = ""
    variable: str = ""
    decode_rule: str = ""

    def identity(self) -> tuple[str, ...]:
        """Return everything but size and time of the objects, which change when a store is copied."""
        return self.store, self.array, self.kind, self.metadata, self.content, self.variable, self.decode_rule


def digest(*parts: object) -> str:
    """Return the digest of some plain values; the order and every value count."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def objects_digest(stats: Iterable[ObjectStat | None]) -> str:
    """Return the digest of some stored objects; an absent one counts as such."""
    return digest([None if s is None else s.fingerprint for s in stats])


def array_text(array: "zarr.Array[Any]", kind: ArrayKind) -> str:
    """Return what of an array's metadata counts for its kind, as :func:`headrace.array_metadata.metadata_text`."""
    return metadata_text(array, TIME_ATTRIBUTES if kind == "time" else VALUE_ATTRIBUTES)


def series_snapshot(name: str, array: "zarr.Array[Any] | None") -> ArraySnapshot:
    """Return the snapshot of a time series; None stands for an optional array that is not there."""
    metadata = "" if array is None else array_text(array, "series")
    return ArraySnapshot(store="timeseries", array=name, kind="series", metadata=metadata)


def look_at(group: zarr.Group, uri: str, store: StoreKind, name: str, kind: ArrayKind) -> ArraySnapshot:
    """Return an array's snapshot without content; with empty metadata where there is no such array.

    Look before the values are read: what changes in between is then found changed later.
    """
    array = find_member(group, uri, name)
    if array is None:
        return ArraySnapshot(store=store, array=name, kind=kind, metadata="")
    if kind == "series":
        return series_snapshot(name, array)
    metadata = array_text(array, kind)
    objects = objects_digest(_stats(array, uri, name))
    return ArraySnapshot(store=store, array=name, kind=kind, metadata=metadata, objects=objects)


def _stats(array: "zarr.Array[Any]", uri: str, name: str) -> Iterable[ObjectStat | None]:
    stored = array.shards or array.chunks
    counts = [-(-size // max(chunk, 1)) for size, chunk in zip(array.shape, stored, strict=True)]
    for index in np.ndindex(*counts):
        yield stat_object(array, uri, name, f"{name}/{array.metadata.encode_chunk_key(index)}")


def ids_content(ids: Sequence[str]) -> str:
    """Return the digest of basin ids in store order."""
    return digest(list(ids))


def times_content(times: StoredTimes) -> str:
    """Return the digest of stored times as seconds, whatever their unit, and of their calendar."""
    return _bytes_digest(times.calendar.encode(), times.seconds().astype("<i8").tobytes())


def static_content(rows: StaticRows) -> str:
    """Return the digest of raw attribute values, and of which of them are absent or unreadable."""
    raw = rows.raw.astype(rows.raw.dtype.newbyteorder("<"))
    return _bytes_digest(raw.dtype.str.encode(), raw.tobytes(), rows.state.tobytes())


def _bytes_digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:DIGEST_LENGTH]
