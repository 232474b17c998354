"""The one client of a process for a bucket: requests with their retries, counted, behind a few plain calls."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from headrace.objects.connection import connect
from headrace.objects.counts import counter
from headrace.objects.faults import CutShortError, Fault, Kind, NoProgressError, fault_of
from headrace.objects.limits import request_pool
from headrace.objects.refusals import refusal
from headrace.objects.retry import Retrying
from headrace.objects.stat import ObjectStat
from headrace.schemas.storage_config import StorageConfig

T = TypeVar("T")
_ABSENT_WITHOUT_DOCUMENT = ("HEAD", "DELETE")
"""Requests to which a bare "not found" is an answer: to a GET an object store sends a document, a gateway does not."""
_LOOK_SECONDS = 0.5
_PAGE = 1000
"""Keys that a server lists in one answer."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it was received: its bytes, and what the same answer says of it."""

    data: memoryview
    stat: ObjectStat


@lru_cache(maxsize=64)
def _client(bucket: str, storage: StorageConfig, process: int) -> "S3Client":
    return S3Client(bucket, storage)


def client_for(bucket: str, storage: StorageConfig) -> "S3Client":
    """Return this process's client for a bucket; made by the first call, without a request."""
    return _client(bucket, storage, os.getpid())


class S3Client:
    """Requests to one bucket; used by several threads at once.

    Every method raises StorageError when a request fails for good, and ConfigError where there are no credentials.
    """

    def __init__(self, bucket: str, storage: StorageConfig) -> None:
        self.bucket, self.storage = bucket, storage
        self._lock = threading.Lock()
        self._connection: Any = None
        self._answered = self._given_up = False

    def get(self, key: str) -> StoredObject | None:
        """Return an object with its size and etag, or None where the server says that there is none."""
        import obstore

        def call(store: Any) -> StoredObject:
            answer = obstore.get(store, key)
            meta = answer.meta
            data = memoryview(answer.bytes())
            if len(data) != meta["size"]:
                msg = f"{len(data)} of {meta['size']} bytes came"
                raise CutShortError(msg)
            counter.add(nbytes=len(data))
            return StoredObject(data, stat_of(meta))

        return self._asked("GET", key, call)

    def submit(self, key: str) -> "Future[StoredObject | None]":
        """Begin a :meth:`get`; as many are under way as the process may have."""
        return request_pool(self.storage).submit(self.get, key)

    def stat(self, key: str) -> ObjectStat | None:
        """Return size and etag of an object, or None where there is none."""
        import obstore

        return self._asked("HEAD", key, lambda store: stat_of(obstore.head(store, key)))

    def listing(self, folder: str) -> dict[str, ObjectStat]:
        """Return size and etag of every object below a folder, by key; a request for every thousand.

        The object that consoles make to show an empty folder is not one of them.
        """
        import obstore

        found: dict[str, ObjectStat] = {}
        last = ""

        def page(store: Any) -> list[Any]:
            pages = obstore.list(store, folder or None, offset=last or None, chunk_size=_PAGE)
            rows = list(next(iter(pages), []))
            if len(rows) == _PAGE and rows[-1]["path"] <= last:
                msg = f"a listing that was to go on after {last} came to {rows[-1]['path']}"
                raise NoProgressError(msg)
            return rows

        while True:
            rows = self._asked("LIST", folder, page) or []
            found |= {row["path"]: stat_of(row) for row in rows if row["path"] != folder}
            if len(rows) < _PAGE:
                return found
            last = rows[-1]["path"]

    def folders(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the names of folders and of objects directly in a folder, sorted."""
        import obstore

        found: Any = self._asked("LIST", folder, lambda store: obstore.list_with_delimiter(store, folder or None))
        start = len(folder) + 1 if folder else 0
        keys = found["common_prefixes"], [row["path"] for row in found["objects"]]
        folders, objects = (sorted(key[start:].strip("/") for key in group if key != folder) for group in keys)
        return folders, objects

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        import obstore

        self._asked("PUT", key, lambda store: obstore.put(store, key, data, use_multipart=len(data) > 64 * 2**20))

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        import obstore

        self._asked("DELETE", key, lambda store: obstore.delete(store, key))

    def _asked(self, action: str, key: str, call: Callable[[Any], T]) -> T | None:
        """Send a request until it is answered; None where the server says that there is no such object."""
        from obstore.exceptions import BaseError

        retrying, renewed = Retrying(self.storage), False
        while True:
            store, address, credentials = self._connected()
            counter.add(requests=1)
            try:
                answer = call(store)
            except (BaseError, CutShortError, NoProgressError, OSError, ValueError) as error:
                fault = fault_of(error)
            else:
                self._answered = True
                return answer
            self._answered = self._answered or fault.answered
            if fault.kind is Kind.ABSENT:
                if action in _ABSENT_WITHOUT_DOCUMENT or (action == "GET" and fault.documented):
                    return None
                fault = replace(fault, kind=Kind.PERMANENT)  # a listing that is not found lists nothing as absent
            if (fault.kind is Kind.EXPIRED or (fault.perhaps_expired and credentials is not None)) and not renewed:
                renewed = True
                self._renew(store)
                counter.add(retries=1)
                continue
            pause = retrying.pause_after(fault, answered=self._answered, given_up=self._given_up)
            if pause is None:
                self._given_up = not self._answered and fault.kind in (Kind.UNREACHED, Kind.TRANSIENT)
                raise refusal(
                    replace(fault, kind=Kind.UNREACHED) if self._given_up else fault,
                    action=action,
                    url=f"s3://{self.bucket}/{key}",
                    address=address,
                    credentials=credentials,
                    tries=retrying.tries,
                    seconds=retrying.elapsed,
                )
            self._note(fault)
            self._wait(pause)

    def _wait(self, seconds: float) -> None:
        """Pause before the next try; raises RuntimeError once the interpreter ends, which waits for its threads."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            request_pool(self.storage).submit(int)

    def _note(self, fault: Fault) -> None:
        counter.add(retries=1, throttles=fault.kind is Kind.THROTTLED)

    def _connected(self) -> Any:
        with self._lock:
            if self._connection is None:
                self._connection = connect(self.bucket, self.storage)
            return self._connection

    def _renew(self, store: Any) -> None:
        """Look for credentials again, unless another thread has done so since."""
        with self._lock:
            if self._connection is not None and self._connection[0] is store:
                self._connection = None


def stat_of(meta: Any) -> ObjectStat:
    """Return size and fingerprint of an object; a server without etags is taken by its time, in whole seconds."""
    etag = str(meta["e_tag"] or "").removeprefix("W/").strip('"')
    tag = etag or f"{meta['last_modified']:%Y%m%dT%H%M%SZ}"
    return ObjectStat(nbytes=meta["size"], fingerprint=f"{meta['size']}:{tag}")
