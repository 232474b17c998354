"""Open a Zarr store where it lies, on a disk or in a bucket; a store that is not there is told apart from others."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import zarr
from zarr.errors import ContainsArrayError, GroupNotFoundError, NodeNotFoundError
from zarr.storage import LocalStore

from headrace.objects import Location, is_remote, parse_location
from headrace.objects.zarr_store import RemoteStore
from headrace.schemas.errors import HeadraceError, SourceError, StoreNotFoundError, describe
from headrace.schemas.storage_config import StorageConfig

_NAMED = 8
"""Siblings that a message names."""
_shared: ContextVar[dict[tuple[Location, StorageConfig], RemoteStore] | None] = ContextVar("shared", default=None)


@contextmanager
def opening_once() -> Iterator[None]:
    """Let everything that this thread opens inside the context share what it asks a bucket for.

    Whoever looks at a store and then reads it asks for its metadata once; what changes in between is found by the
    chunks that are read.
    """
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def open_group(uri: str, storage: StorageConfig | None = None, *, key: str = "") -> zarr.Group:
    """Open a store for reading.

    Array metadata is always read from the array itself: a consolidated copy can be stale, and to find that out takes
    as many requests as to do without it.

    Parameters
    ----------
    uri
        Path, or ``s3://bucket/folder``.
    storage
        How object stores are reached; does not matter on a disk.
    key
        Dotted key of the configuration that holds the path; errors name it.

    Raises
    ------
    StoreNotFoundError
        There is no such store; the message lists its siblings.
    SourceError
        It cannot be opened.
    ConfigError
        The URI's scheme is not supported.
    """
    where = f"{key}: {uri}" if key else uri
    remote = _remote(parse_location(uri, where=key), storage or StorageConfig()) if is_remote(uri) else None
    store = LocalStore(Path(uri), read_only=True) if remote is None else remote
    try:
        return zarr.open_group(store, mode="r", use_consolidated=False)
    except (GroupNotFoundError, NodeNotFoundError, FileNotFoundError, NotADirectoryError, ContainsArrayError) as error:
        got = _beside(Path(uri)) if remote is None else _beside_objects(remote)
        raise StoreNotFoundError(
            describe(
                "store not found",
                where=where,
                expected="a Zarr group of format 2 or 3",
                got=got,
                fix="correct the path in the configuration",
            )
        ) from error
    except HeadraceError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise SourceError(
            describe(
                "store cannot be opened", where=where, expected="a Zarr group of format 2 or 3",
                got=f"{type(error).__name__}: {error}", fix="check the store's metadata and rights",
            )
        ) from error  # fmt: skip


def _remote(location: Location, storage: StorageConfig) -> RemoteStore:
    shared = _shared.get()
    if shared is None:
        return RemoteStore(location, storage)
    return shared.setdefault((location, storage), RemoteStore(location, storage))


def _beside(path: Path) -> str:
    """Say what is there instead of a store on a disk."""
    if (path / ".zarray").is_file() or (path / "zarr.json").is_file():
        return "an array, not a group"
    if path.is_dir():
        return "a folder without group metadata (.zgroup or zarr.json)"
    if path.exists():
        return "a file"
    if not path.parent.is_dir():
        return f"no folder {path.parent}"
    return _nothing([p.name for p in path.parent.glob("*.zarr")])


def _beside_objects(remote: RemoteStore) -> str:
    """Say what is there instead of a store in a bucket."""
    location = remote.location
    folders, objects = remote.client.folders(location.key)
    if {".zarray", "zarr.json"} & set(objects):
        return "an array, not a group"
    if folders or objects:
        return "a folder without group metadata (.zgroup or zarr.json)"
    parent = location.key.rpartition("/")[0]
    folders, objects = remote.client.folders(parent)
    if not folders and not objects:
        return f"no folder {parent}" if parent else "an empty bucket"
    return _nothing([name for name in folders if name.endswith(".zarr")])


def _nothing(siblings: list[str]) -> str:
    beside = f"; beside it are: {', '.join(sorted(siblings)[:_NAMED])}" if siblings else ""
    return f"nothing there{beside}"
