"""A bucket through s3fs, for where obstore does not work.

Requests go straight to the client that s3fs holds, so that size and etag come with an object's bytes, and what fails
comes as the server said it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from headrace.objects.bucket import MULTIPART_NBYTES, PAGE, StoredObject, stat_of
from headrace.objects.connection import Address, resolve
from headrace.objects.credentials import Credentials, find_credentials
from headrace.objects.faults import CutShortError, Fault, FaultError, NoProgressError
from headrace.objects.proven_empty import not_a_listing
from headrace.objects.s3fs_faults import LookUpError, fault_of
from headrace.objects.s3fs_session import file_system
from headrace.objects.stat import ObjectStat
from headrace.schemas.storage_config import StorageConfig

T = TypeVar("T")
_OF_LISTINGS = {"Contents", "CommonPrefixes", "IsTruncated", "KeyCount", "MaxKeys", "Name"}
"""Parts of a listing, of which every one has some."""


class S3fsBucket:
    """See :class:`headrace.objects.bucket.Bucket`; nothing is sent before the first request.

    Raises
    ------
    ConfigError
        There are no credentials, or the address cannot be used.
    """

    def __init__(self, name: str, storage: StorageConfig) -> None:
        from aiohttp import ClientError as ConnectionBrokenError
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        self.credentials: Credentials | None = find_credentials(storage, f"s3://{name}")
        self.address: Address = resolve(name, storage, None if self.credentials is None else self.credentials.region)
        self.errors: tuple[type[Exception], ...] = (
            BotoCoreError, ClientError, ConnectionBrokenError, ResponseParserError, CutShortError, FaultError,
            NoProgressError,
            LookUpError, OSError, ValueError,
        )  # fmt: skip
        self._name, self._storage = name, storage
        self.heard = False
        self._lock = threading.Lock()
        self._made: Any = None

    def fault_of(self, error: Exception) -> Fault:
        """Return what an error means."""
        return fault_of(error)

    def get(self, key: str) -> StoredObject:
        """Return an object."""

        async def receive(client: Any) -> StoredObject:
            answer = await client.get_object(Bucket=self._name, Key=key)
            self.heard = True
            body = answer["Body"]
            try:
                data = await body.read()
            finally:
                body.close()
            size = answer.get("ContentLength")
            if size != len(data):
                msg = f"{len(data)} of {'unknown' if size is None else size} bytes came"
                raise CutShortError(msg)
            return StoredObject(memoryview(data), _stat(answer, size))

        return self._ask(receive)

    def head(self, key: str) -> ObjectStat:
        """Return size and fingerprint of an object."""
        answer: dict[str, Any] = self._ask(lambda client: client.head_object(Bucket=self._name, Key=key))
        return _stat(answer, answer["ContentLength"])

    def page(self, folder: str, after: str) -> list[tuple[str, ObjectStat]]:
        """Return the next keys below a folder."""
        rows: list[tuple[str, ObjectStat]] = []
        where = {"StartAfter": after} if after else {}
        for answer in self._answers(folder, **where):
            rows += [(_path(row["Key"]), _stat(row, row["Size"])) for row in answer.get("Contents", [])]
            if len(rows) >= PAGE:
                break
        return rows

    def prove_empty(self, folder: str, after: str) -> None:
        """Do nothing: every listing was looked at."""

    def folders(self, folder: str) -> tuple[list[str], list[str]]:
        """Return what lies directly in a folder."""
        answers = list(self._answers(folder, Delimiter="/"))
        folders = [row["Prefix"] for answer in answers for row in answer.get("CommonPrefixes", [])]
        return folders, [_path(row["Key"]) for answer in answers for row in answer.get("Contents", [])]

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        if len(data) > MULTIPART_NBYTES:
            self._files().pipe_file(f"{self._name}/{key}", data)
        else:
            self._ask(lambda client: client.put_object(Bucket=self._name, Key=key, Body=data))

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._ask(lambda client: client.delete_object(Bucket=self._name, Key=key))

    def _answers(self, folder: str, **where: str) -> Any:
        """Yield the answers of a listing until the server says that there are no more."""
        asked = {"Bucket": self._name, "Prefix": f"{folder}/" if folder else "", "MaxKeys": PAGE, **where}
        while True:
            answer = self._list(asked)
            yield answer
            token = answer.get("NextContinuationToken")
            if not answer.get("IsTruncated"):
                return
            if not token or token == asked.get("ContinuationToken"):
                msg = "a listing that is to go on does not say where"
                raise NoProgressError(msg)
            asked = {**asked, "ContinuationToken": token}

    def _list(self, asked: dict[str, Any]) -> dict[str, Any]:
        answer = self._ask(lambda client: client.list_objects_v2(**asked))
        if not _OF_LISTINGS & answer.keys():
            said = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("content-type", "")
            raise FaultError(not_a_listing(f"a document of type {said}"))
        return dict(answer)

    def _ask(self, request: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """Run a request on the thread of s3fs and wait for its answer."""
        files = self._files()
        return asyncio.run_coroutine_threadsafe(request(files.s3), files.loop).result()

    def _files(self) -> Any:
        with self._lock:
            if self._made is None:
                self._made = file_system(self._name, self._storage, self.address, self.credentials)
            return self._made


def _stat(answer: Any, nbytes: int) -> ObjectStat:
    # Pages of other servers tell no time; the other client takes the beginning of time for it.
    return stat_of(
        nbytes, answer.get("ETag"), answer.get("LastModified", datetime.fromtimestamp(0, UTC)).astimezone(UTC)
    )


def _path(key: str) -> str:
    """Return a key as the rest of this package names it; one that it cannot name ends the listing."""
    path = key.strip("/")
    if "//" in path:
        msg = f"key with an empty path segment: {key}"
        raise ValueError(msg)
    return path
