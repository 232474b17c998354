"""Open a Zarr store where it lies, on a disk or in a bucket; a store that is not there is told apart from others."""

import threading
import time
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
from headrace.schemas.hydro_setting import Source, read_hydro_setting
from headrace.schemas.storage_config import StorageConfig

_NAMED = 8
"""Siblings that a message names."""
FRESH_SECONDS = 60.0
"""How long what a bucket said of a store is taken for what it would say."""


class OpenedStores:
    """Stores in buckets that were opened a moment ago, with what was asked of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stores: dict[tuple[Location, StorageConfig], tuple[float, RemoteStore]] = {}

    def store(self, location: Location, storage: StorageConfig) -> RemoteStore:
        """Return a store as it was opened, or anew where that was too long ago."""
        with self._lock:
            now = time.monotonic()
            began, found = self._stores.get((location, storage), (-FRESH_SECONDS, None))
            if found is None or now - began >= FRESH_SECONDS:
                began, found = self._stores[location, storage] = now, RemoteStore(location, storage)
            return found

    def forget(self) -> None:
        """Ask again for everything: something was wrong, and may be mended by the next time."""
        with self._lock:
            self._stores.clear()


_shared: ContextVar[OpenedStores | None] = ContextVar("shared", default=None)


@contextmanager
def opening_once(stores: OpenedStores | None = None) -> Iterator[None]:
    """Let everything that is opened inside the context share what it asks a bucket for.

    Whoever looks at a store and then reads it asks for its metadata once; what changes in between is found by the
    chunks that are read.

    Parameters
    ----------
    stores
        What was opened before and is to be known later; None shares within the context, or with the one around it.
    """
    stores = stores or _shared.get() or OpenedStores()
    token = _shared.set(stores)
    try:
        yield
    except BaseException:
        stores.forget()
        raise
    finally:
        _shared.reset(token)


def open_group(uri: str, storage: StorageConfig | None = None, *, key: str = "") -> zarr.Group:
    """Open a store for reading.

    Array metadata are the array's own: a consolidated copy can be stale. What a listing proves of it is taken, see
    :mod:`headrace.objects.copied_documents`.

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
                fix=_correction(uri),
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


def _correction(uri: str) -> str:
    """Say what to correct: the file that named the folder, or the URL that was taken for a path."""
    _, single, rest = uri.partition("s3:/")
    if single and not is_remote(uri):
        return f"give a URL with two slashes: s3://{rest}"
    setting = read_hydro_setting()
    keys: dict[Source, str] = {"local": "storage.local.root", "cloud": "storage.s3.bucket and prefix"}
    for source, key in keys.items():
        if setting.says(source) and uri.startswith(f"{setting.store_folder(source)}/"):
            return f"correct the path in the configuration, or {key} in {setting.path}, whose folder it begins with"
    return "correct the path in the configuration"


def _remote(location: Location, storage: StorageConfig) -> RemoteStore:
    shared = _shared.get()
    return RemoteStore(location, storage) if shared is None else shared.store(location, storage)


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
