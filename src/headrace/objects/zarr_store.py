"""A Zarr store in a bucket, for reading only, over the process's client.

Metadata documents are asked for once for the lifetime of a store object, absent ones included. Objects are read whole:
whoever reads a stored chunk wants all of it, and a part of an object carries no proof of what the rest was.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Self

import zarr
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype

from headrace.objects.bucket import StoredObject
from headrace.objects.client import S3Client, client_for
from headrace.objects.copied_documents import CopiedDocuments, read_copy, taken_or_asked
from headrace.objects.fetch import ObjectFetch, held_objects
from headrace.objects.limits import request_pool
from headrace.objects.location import Location
from headrace.objects.stat import ObjectStat
from headrace.schemas.errors import StorageError, describe
from headrace.schemas.storage_config import StorageConfig

_AHEAD_NBYTES = 16 * 2**20
"""Stored bytes of one array that are fetched ahead, at most."""
_CONSOLIDATED = ".zmetadata"
"""Asked for by Zarr whether or not it is to be used; here only what is proven of it is, because it can be stale."""
_DOCUMENTS = {"zarr.json", ".zarray", ".zattrs", ".zgroup", _CONSOLIDATED}


class RemoteStore(Store):
    """A store below a prefix.

    Parameters
    ----------
    location, storage
        Where it lies and how it is reached; all that is kept when it is pickled.

    Attributes
    ----------
    arrays
        Arrays by path that were opened, as long-lived as the documents they were made of.
    """

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, location: Location, storage: StorageConfig) -> None:
        super().__init__(read_only=True)
        self.location, self.storage = location, storage
        self.arrays: dict[str, zarr.Array[Any]] = {}
        self._lock = threading.Lock()
        self._documents: dict[str, Future[StoredObject | None]] = {}
        self._listings: dict[str, Future[dict[str, ObjectStat]]] = {}
        self._whole: dict[str, dict[str, ObjectStat]] = {}
        self._ahead: dict[str, Future[StoredObject | None]] = {}
        self._copy: Future[CopiedDocuments] | None = None
        self._client: S3Client | None = None
        self._process = -1

    def __reduce__(self) -> tuple[type[Self], tuple[Location, StorageConfig]]:
        return type(self), (self.location, self.storage)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteStore) and (self.location, self.storage) == (other.location, other.storage)

    __hash__ = None  # type: ignore[assignment]  # as the class above, which compares by value too

    def __str__(self) -> str:
        return self.location.url

    def __repr__(self) -> str:
        return f"RemoteStore({self.location.url!r})"

    @property
    def client(self) -> S3Client:
        """The client for the bucket, this process's own."""
        if self._client is None or self._process != os.getpid():
            self._client, self._process = client_for(self.location.bucket, self.storage), os.getpid()
        return self._client

    def fetch(self, keys: Iterable[str]) -> ObjectFetch:
        """Begin to fetch objects."""
        client = self.client
        return ObjectFetch(keys, partial(self._submitted, client=client))

    def listing(self, folder: str) -> dict[str, ObjectStat]:
        """Return size and fingerprint of every object below a folder by key; asked for once.

        Raises
        ------
        StorageError
            A document that was received from the folder is not among them: then a chunk may be there as well.
        """
        found = self._whole.get(folder)
        if found is None:
            found = self._listed(folder).result()
            self._refuse_lacking(folder, found)
            self._whole[folder] = found
        return found

    def _refuse_lacking(self, folder: str, listed: Mapping[str, ObjectStat]) -> None:
        for key in (f"{folder}/{document}" for document in ("zarr.json", ".zarray")):
            received = self._documents.get(key)
            if received is not None and key not in listed and received.result() is not None:
                raise StorageError(
                    describe(
                        "listing of an object store is not complete",
                        where=f"{self.location.url}/{folder} at {self.client.endpoint}",
                        expected=f"{key.rpartition('/')[2]}, which was read from there",
                        got=f"{len(listed)} other objects",
                        fix="run the same command again; if it says so again, the server cannot be used",
                    )
                )

    def document(self, key: str) -> bytes | None:
        """Return a metadata document as it is in the bucket; None where the server says that there is none."""
        found = self._asked(key).result()
        return None if found is None else bytes(found.data)

    def ask_ahead(self, documents: Iterable[str], folders: Iterable[str], copy: str) -> None:
        """Ask for documents and listings that will be wanted one after another; answers and faults wait for that.

        Of arrays that are listed, documents are taken from the store's consolidated ``copy`` where the listing proves
        them.
        """
        wanted = list(folders)
        if wanted and self._copy is None:
            self._copy = read_copy(self._asked(copy))
        for folder in wanted:
            self._listed(folder)
        for key in documents:
            self._asked(key)

    def fetch_ahead(self, folders: Iterable[str]) -> None:
        """Begin to fetch all objects below folders, where they are not large; each is handed out once."""
        for folder in folders:
            listed = self._listed(folder)
            if listed.exception() is not None:
                continue  # whoever asks for the listing is told
            found = {k: s for k, s in listed.result().items() if k.rpartition("/")[2] not in _DOCUMENTS}
            if sum(stat.nbytes for stat in found.values()) <= _AHEAD_NBYTES:
                self._ahead |= {key: self._submitted(key) for key in found}

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return an object or a part of it; None only where the server says that there is none."""
        if key == _CONSOLIDATED:
            return None
        if key.endswith("/.zgroup") and await _heard(self._asked(f"{key[:-7]}.zarray")) is not None:
            return None  # what is an array is no group
        found = await _heard(self._asked(key))
        if found is None:
            return None
        data = found.data
        return prototype.buffer.from_bytes(data if byte_range is None else _part(data, byte_range))

    def _asked(self, key: str) -> "Future[StoredObject | None]":
        held = held_objects.get()
        if held is not None and key in held:
            return held[key]
        if key.rpartition("/")[2] not in _DOCUMENTS:
            return self._submitted(key)
        with self._lock:
            known = self._documents.get(key)
            if known is None or _failed(known):
                known = self._documents[key] = self._taken_or_asked(key)
            return known

    def _taken_or_asked(self, key: str) -> "Future[StoredObject | None]":
        ask = partial(self.client.submit, self.location.joined(key))
        listing = self._listings.get(key.rpartition("/")[0])
        return ask() if self._copy is None or listing is None else taken_or_asked(key, self._copy, listing, ask)

    def _submitted(self, key: str, client: S3Client | None = None) -> "Future[StoredObject | None]":
        ahead = self._ahead.pop(key, None) if self._ahead else None
        return (client or self.client).submit(self.location.joined(key)) if ahead is None else ahead

    def _listed(self, folder: str) -> "Future[dict[str, ObjectStat]]":
        with self._lock:
            known = self._listings.get(folder)
            if known is None or _failed(known):
                known = self._listings[folder] = request_pool(self.storage).submit(self._list, folder)
            return known

    def _list(self, folder: str) -> dict[str, ObjectStat]:
        start = len(self.location.joined("x")) - 1
        return {
            key[start:]: stat
            for key, stat in self.client.listing(self.location.joined(folder), proven=not folder).items()
        }

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return parts of several objects."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Return whether there is an object."""
        return await asyncio.to_thread(self.client.stat, self.location.joined(key)) is not None

    async def list(self) -> AsyncIterator[str]:
        """Yield every key."""
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield every key below a folder."""
        for key in await asyncio.to_thread(self.listing, prefix.strip("/")):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names directly in a folder."""
        folder = self.location.joined(prefix.strip("/")).rstrip("/")
        folders, objects = await asyncio.to_thread(self.client.folders, folder)
        for name in (*folders, *objects):
            yield name

    async def set(self, key: str, value: Buffer) -> None:
        """Refuse."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Refuse."""
        self._check_writable()


def _heard(asked: "Future[StoredObject | None]") -> "asyncio.Future[StoredObject | None]":
    """Return what waits for a request; its fault is told by another one where nobody waits any longer."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[StoredObject | None] = loop.create_future()

    def tell() -> None:
        if found.done():
            return
        if asked.cancelled():
            found.cancel()
        elif (error := asked.exception()) is not None:
            found.set_exception(error)
            found.exception()  # looked at here and now: the loop may end before it calls whoever waits
        else:
            found.set_result(asked.result())

    def settled(_: "Future[StoredObject | None]") -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            loop.call_soon_threadsafe(tell)

    asked.add_done_callback(settled)
    return found


def _failed(asked: "Future[Any]") -> bool:
    """Return whether a request is to be made again."""
    return asked.cancelled() or (asked.done() and asked.exception() is not None)


def _part(data: memoryview, wanted: ByteRequest) -> memoryview:
    match wanted:
        case RangeByteRequest(start, end):
            return data[start:end]
        case OffsetByteRequest(offset):
            return data[offset:]
        case SuffixByteRequest(suffix):
            return data[max(len(data) - suffix, 0) :]
    raise TypeError(f"unknown part of an object: {wanted!r}")


def remote_store(array_or_group: Any) -> RemoteStore | None:
    """Return the bucket's store behind an open array or group, None where it lies on a disk."""
    store = array_or_group.store
    return store if isinstance(store, RemoteStore) else None


def ask_ahead(group: zarr.Group, names: Iterable[str], *, listed: Iterable[str] = (), read: Iterable[str] = ()) -> None:
    """Ask a bucket for the metadata of arrays that are to be opened one after another, all at once.

    Parameters
    ----------
    group
        Of the arrays; on a disk nothing is done.
    names
        Arrays to be opened, whether or not there are such.
    listed
        Those of them whose stored objects are to be looked at as well.
    read
        Those of the listed ones that are to be read whole.
    """
    remote = remote_store(group)
    if remote is not None:
        newer = group.metadata.zarr_format == 3
        documents, copy = (("zarr.json",), "zarr.json") if newer else ((".zarray", ".zattrs"), _CONSOLIDATED)
        remote.ask_ahead([f"{name}/{document}" for name in names for document in documents], listed, copy)
        remote.fetch_ahead(read)
