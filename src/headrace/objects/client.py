"""The one client of a process for a bucket: requests with their retries, counted, behind a few plain calls."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar

from headrace.objects.at_once import within
from headrace.objects.bucket import PAGE, Bucket, StoredObject
from headrace.objects.client_library import connect
from headrace.objects.contact import Contact, SilentError, Turn, contact_with, first_seconds, send_first
from headrace.objects.counts import counter
from headrace.objects.faults import Fault, Kind, NoProgressError
from headrace.objects.forks import refuse_fork
from headrace.objects.limits import request_pool
from headrace.objects.refusals import refusal
from headrace.objects.request_threads import RequestThreads
from headrace.objects.retry import Retrying
from headrace.objects.stat import ObjectStat
from headrace.schemas.errors import StorageError
from headrace.schemas.storage_config import StorageConfig

T = TypeVar("T")
_ABSENT_WITHOUT_DOCUMENT = ("HEAD", "DELETE")
"""Requests to which a bare "not found" is an answer: to a GET an object store sends a document, a gateway does not."""


class _Failed(NamedTuple):
    """A try that failed, on which connection, and when it began."""

    bucket: Bucket
    error: Exception
    began: float


@lru_cache(maxsize=64)
def _client(bucket: str, storage: StorageConfig, process: int) -> "S3Client":
    return S3Client(bucket, storage)


def client_for(bucket: str, storage: StorageConfig) -> "S3Client":
    """Return this process's client for a bucket; made by the first call, without a request.

    Raises
    ------
    ConfigError
        This process is a fork of one that has used object storage.
    """
    refuse_fork()
    return _client(bucket, storage, os.getpid())


class S3Client:
    """Requests to one bucket; used by several threads at once.

    Every method raises StorageError when a request fails for good, and ConfigError where there are no credentials.
    """

    def __init__(self, bucket: str, storage: StorageConfig) -> None:
        self.bucket, self.storage = bucket, storage
        self._lock = threading.Lock()
        self._connection: Bucket | None = None
        self._contact: Contact | None = None
        self._threads: RequestThreads | None = None

    @property
    def endpoint(self) -> str:
        """Where requests go."""
        return self._connected().address.endpoint

    def get(self, key: str) -> StoredObject | None:
        """Return an object with its size and etag, or None where the server says that there is none."""
        bucket, contact = self._connection, self._contact
        failed: _Failed | None = None
        # The usual case, without what the first request, a retry and the main thread need.
        if bucket is not None and contact is not None and contact.answered and not _in_main_thread():
            began = time.monotonic()
            try:
                received = bucket.get(key)
            except bucket.errors as error:
                failed = _Failed(bucket, error, began)
            else:
                counter.add(requests=1, nbytes=received.stat.nbytes)
                return received
        found = self._asked("GET", key, lambda bucket: bucket.get(key), failed)
        if found is not None:
            counter.add(nbytes=found.stat.nbytes)
        return found

    def submit(self, key: str) -> "Future[StoredObject | None]":
        """Begin a :meth:`get`; as many are under way as the process may have."""
        if self._threads is None:
            self._threads = request_pool(self.storage)
        return self._threads.submit(self.get, key)

    def stat(self, key: str) -> ObjectStat | None:
        """Return size and etag of an object, or None where there is none."""
        return self._asked("HEAD", key, lambda bucket: bucket.head(key))

    def listing(self, folder: str, *, proven: bool = True) -> dict[str, ObjectStat]:
        """Return size and etag of every object below a folder, by key; a request for every thousand.

        The object that consoles make to show an empty folder is not one of them.

        Parameters
        ----------
        folder
            Its key.
        proven
            Whether an empty listing is to be looked into; not, where the caller knows an object that has to be there.
        """
        found: dict[str, ObjectStat] = {}
        last = ""

        def page(bucket: Bucket) -> list[tuple[str, ObjectStat]]:
            rows = bucket.page(folder, last)
            if not rows and (last or proven):
                bucket.prove_empty(folder, last)
            if len(rows) >= PAGE and rows[-1][0] <= last:
                msg = f"a listing that was to go on after {last} came to {rows[-1][0]}"
                raise NoProgressError(msg)
            return rows

        while True:
            rows = self._asked("LIST", folder, page) or []
            found |= {key: stat for key, stat in rows if key != folder}
            if len(rows) < PAGE:
                return found
            last = rows[-1][0]

    def folders(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the names of folders and of objects directly in a folder, sorted."""
        keys = self._asked("LIST", folder, lambda bucket: bucket.folders(folder)) or ([], [])
        start = len(folder) + 1 if folder else 0
        folders, objects = (sorted(key[start:].strip("/") for key in group if key != folder) for group in keys)
        return folders, objects

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        self._asked("PUT", key, lambda bucket: bucket.put(key, data))

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        self._asked("DELETE", key, lambda bucket: bucket.delete(key))

    def _asked(self, action: str, key: str, call: Callable[[Bucket], T], failed: _Failed | None = None) -> T | None:
        """Send a request until it is answered; None where the server says that there is no such object.

        Parameters
        ----------
        action, key, call
            What is asked, for messages, and how.
        failed
            What came of it just now; counts as the first try.
        """
        contact = contact_with(self._connected().address.endpoint)
        with contact.first_request() as turn:
            lost, retrying = contact.lost(), Retrying(self.storage, None if failed is None else failed.began)
            if lost is not None:
                raise self._refused(lost, action, key, retrying)
            try:
                return self._tried(action, key, call, contact, turn, retrying, failed)
            finally:
                turn.end()

    def _tried(
        self,
        action: str,
        key: str,
        call: Callable[[Bucket], T],
        contact: Contact,
        turn: Turn,
        retrying: Retrying,
        failed: _Failed | None,
    ) -> T | None:
        renewed = doubted = False
        while True:
            bucket = self._connected() if failed is None else failed.bucket  # perhaps renewed since
            counter.add(requests=1)
            try:
                if failed is not None:
                    error, failed = failed.error, None
                    raise error
                answer = _sent(partial(call, bucket)) if contact.answered else self._first(bucket, call, turn, retrying)
            except SilentError as error:
                fault = Fault(kind=Kind.UNREACHED, reason=str(error))
            except bucket.errors as error:
                fault = bucket.fault_of(error)
            else:
                turn.heard()
                return answer
            if fault.answered:
                turn.heard()
            if fault.kind is Kind.ABSENT:
                if action in _ABSENT_WITHOUT_DOCUMENT or (action == "GET" and fault.documented):
                    return None
                fault = replace(fault, kind=Kind.PERMANENT)  # a listing that is not found lists nothing as absent
            if (
                fault.kind is Kind.EXPIRED or (fault.perhaps_expired and bucket.credentials is not None)
            ) and not renewed:
                renewed = True
                self._renew(bucket)
                counter.add(retries=1)
                continue
            passing = replace(fault, kind=Kind.TRANSIENT) if fault.odd and not doubted else fault
            doubted = doubted or fault.odd
            pause = retrying.pause_after(passing, answered=contact.answered)
            if pause is None:
                if not contact.answered and fault.kind in (Kind.UNREACHED, Kind.TRANSIENT):
                    fault = replace(fault, kind=Kind.UNREACHED)
                    contact.give_up(fault)
                raise self._refused(fault, action, key, retrying)
            self._note(fault)
            self._wait(pause)

    def _first(self, bucket: Bucket, call: Callable[[Bucket], T], turn: Turn, retrying: Retrying) -> T:
        def heard() -> bool:
            if bucket.heard:
                turn.heard()
            return bucket.heard

        def again() -> bool:
            allowed = retrying.begin_another()
            counter.add(requests=int(allowed), retries=int(allowed))
            return allowed

        left = max(first_seconds(self.storage) - retrying.elapsed, 0.0)
        return send_first(lambda: call(bucket), seconds=left, heard=heard, again=again)

    def _refused(self, fault: Fault, action: str, key: str, retrying: Retrying) -> StorageError:
        bucket = self._connected()
        return refusal(
            fault,
            action=action,
            url=f"s3://{self.bucket}/{key}",
            address=bucket.address,
            credentials=bucket.credentials,
            tries=retrying.tries,
            seconds=retrying.elapsed,
        )

    def _wait(self, seconds: float) -> None:
        """Pause before the next try; raises RuntimeError where nobody wants it any longer."""
        if not request_pool(self.storage).pause(seconds):
            raise RuntimeError("no request can be sent: the process ends, or the request was given up")

    def _note(self, fault: Fault) -> None:
        counter.add(retries=1, throttles=fault.kind is Kind.THROTTLED)

    def _connected(self) -> Bucket:
        with self._lock:
            if self._connection is None:
                self._connection = connect(self.bucket, self.storage)
                self._contact = contact_with(self._connection.address.endpoint)
            return self._connection

    def _renew(self, bucket: Bucket) -> None:
        """Look for credentials again, unless another thread has done so since."""
        with self._lock:
            if self._connection is bucket:
                self._connection = None


def _sent(call: Callable[[], T]) -> T:
    """Call; the client library lets no Ctrl-C through to the main thread while it waits for an answer."""
    return within(call, None) if _in_main_thread() else call()


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident
