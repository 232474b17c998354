"""Digests that change when a store changes: of an array's metadata, of its layout, of stored objects, of an order.

None of them reads a value: metadata documents and the file system's word are enough.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.snapshot import DIGEST_LENGTH, digest, objects_digest
from headrace.store import StoredArray

__all__ = ["DIGEST_LENGTH", "digest", "layout_digest", "metadata_digest", "objects_digest", "order_digest"]


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


def order_digest(order: NDArray[np.int64] | None) -> str:
    """Return the digest of an order; '' where steps are stored as they are indexed."""
    return "" if order is None else digest(order.tolist())
