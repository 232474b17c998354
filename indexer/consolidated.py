"""Consolidated copies of metadata that are not what the arrays' own documents say, which alone count here.

Whoever opens the store with another library may go by them: a grown array then ends where it ended before.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from headrace.array_metadata import differences
from headrace.indexer.facts import Inventory
from headrace.members import find_member
from headrace.objects import is_remote
from headrace.objects.at_once import at_once
from headrace.objects.zarr_store import remote_store
from headrace.open_store import open_group
from headrace.schemas.errors import SourceError, StorageError
from headrace.schemas.storage_config import StorageConfig
from headrace.snapshot import ArraySnapshot, array_text

_NAMED = 4
"""Differences that a remark names."""


def stale_copies(inventory: Inventory) -> list[str]:
    """Return a remark for each store whose consolidated metadata differ from the arrays that an index rests on.

    A copy that cannot be had is passed over, for nobody needs it.
    """
    looked: dict[str, Sequence[ArraySnapshot]] = {}
    for dataset in inventory.datasets:
        for uri, kind in ((dataset.config.timeseries, "timeseries"), (dataset.config.attributes, "attributes")):
            if uri is not None:
                own = tuple(s for s in dataset.snapshots if s.store == kind)
                looked[uri] = tuple(dict.fromkeys((*looked.get(uri, ()), *own)))
    calls = [partial(_remark, uri, inventory.config.storage, arrays) for uri, arrays in looked.items()]
    return [remark for remark in at_once(calls, remote=any(map(is_remote, looked))) if remark]


def _remark(uri: str, storage: StorageConfig, arrays: Sequence[ArraySnapshot]) -> str:
    found: list[str] = []
    with suppress(StorageError, OSError):
        try:
            copy = _copy(open_group(uri, storage), uri)
            if copy is not None:
                found = [f"array {s.array}: {words}" for s in arrays for words in _differences(copy, uri, s)]
        except (SourceError, ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, StorageError):
                raise
            found = [f"it cannot be read: {type(error).__name__}"]
    found = list(dict.fromkeys(found))
    more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    named = "; ".join(found[:_NAMED])
    return f"{uri}: consolidated metadata are stale and not used here; {named}{more}" if found else ""


def _differences(copy: zarr.Group, uri: str, own: ArraySnapshot) -> list[str]:
    array = find_member(copy, uri, own.array)
    copied = "" if array is None else array_text(array, own.kind)
    if copied and own.metadata:
        return differences(copied, own.metadata)
    if copied != own.metadata:
        return ["it is gone" if copied else "it is new"]
    return []


def _copy(group: zarr.Group, uri: str) -> zarr.Group | None:
    """Return the arrays as the copy has them, without values; None where there is no copy."""
    if group.metadata.zarr_format == 3:
        root = json.loads(_document(group, uri, "zarr.json") or b"{}")
        copied = (root.get("consolidated_metadata") or {}).get("metadata")
        documents = {f"{name}/zarr.json": document for name, document in (copied or {}).items()}
        documents["zarr.json"] = {"zarr_format": 3, "node_type": "group"}
    else:
        content = _document(group, uri, ".zmetadata")
        copied = None if content is None else json.loads(content)["metadata"]
        documents = {**(copied or {}), ".zgroup": {"zarr_format": 2}}
    return None if copied is None else _in_memory(documents)


def _in_memory(documents: Mapping[str, Any]) -> zarr.Group:
    buffer = default_buffer_prototype().buffer
    held = {key: buffer.from_bytes(json.dumps(document).encode()) for key, document in documents.items()}
    return zarr.open_group(MemoryStore(held), mode="r", use_consolidated=False)


def _document(group: zarr.Group, uri: str, key: str) -> bytes | None:
    remote = remote_store(group)
    if remote is not None:
        return remote.document(key)
    with suppress(FileNotFoundError):
        return Path(uri, key).read_bytes()
    return None
