"""Digests that change when a store changes: of metadata and coordinates, of an array's layout, of stored objects.

None of them reads a value: metadata documents, coordinates already read and the file system's word are enough.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.indexer.facts import VariableFacts
from headrace.schemas.time_axis import TimeAxis
from headrace.store import ObjectStat, StoredArray

DIGEST_LENGTH = 24
"""Hex digits kept of a SHA-256: 96 bits, so that 10⁹ scan units collide with probability 10⁻¹¹."""


def digest(*parts: object) -> str:
    """Return the digest of some plain values; the order and every value count."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def metadata_digest(stored: StoredArray) -> str:
    """Return the digest of an array's whole metadata document, attributes and shape included."""
    return digest(_document(stored))


def layout_digest(stored: StoredArray) -> str:
    """Return the digest of what turns stored bytes into raw values; shape and attributes do not enter."""
    document = _document(stored)
    for loose in ("shape", "attributes"):
        document.pop(loose, None)
    return digest(document, stored.dims)


def _document(stored: StoredArray) -> dict[str, Any]:
    document: dict[str, Any] = stored.array.metadata.to_dict()
    return {k: repr(v) if k == "fill_value" else v for k, v in document.items()}


def objects_digest(stats: Iterable[ObjectStat | None]) -> str:
    """Return the digest of the stored objects of one scan unit; an absent one counts as such."""
    return digest([None if s is None else s.fingerprint for s in stats])


def order_digest(order: NDArray[np.int64] | None) -> str:
    """Return the digest of an order; '' where steps are stored as they are indexed."""
    return "" if order is None else digest(order.tolist())


def store_fingerprint(
    variables: Sequence[VariableFacts], ids: Sequence[str], axis: TimeAxis, order: NDArray[np.int64] | None
) -> str:
    """Return the digest of the metadata of all arrays in use and of the coordinates."""
    # Where a store lies says nothing about what it holds.
    arrays = sorted((v.stored.name, metadata_digest(v.stored)) for v in variables if v.stored is not None)
    times = [(s.start, s.stop, s.seconds) for s in axis.segments]
    mended = () if order is None else (order.tolist(),)
    return digest(arrays, list(ids), times, axis.step_seconds, axis.calendar, *mended)
