"""A bucket through s3fs, for where obstore does not work; its own tries, caches and look-up of credentials are off.

s3fs brings the session, the connections and the thread whose event loop serves them. Requests go straight to its
client, so that size and etag come with an object's bytes, and what fails comes as the server said it.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC
from functools import lru_cache
from typing import Any, TypeVar

from headrace.objects.bucket import MULTIPART_NBYTES, PAGE, StoredObject, stat_of
from headrace.objects.connection import CONNECT_SECONDS, Address, resolve, silence_seconds
from headrace.objects.credentials import Credentials, find_credentials
from headrace.objects.faults import CutShortError, Fault, NoProgressError
from headrace.objects.limits import concurrency
from headrace.objects.s3fs_faults import LookUpError, fault_of
from headrace.objects.stat import ObjectStat
from headrace.schemas.storage_config import StorageConfig

T = TypeVar("T")


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
            BotoCoreError, ClientError, ConnectionBrokenError, ResponseParserError, CutShortError, NoProgressError,
            LookUpError, OSError, ValueError,
        )  # fmt: skip
        self._name, self._storage = name, storage
        self._lock = threading.Lock()
        self._made: Any = None

    def fault_of(self, error: Exception) -> Fault:
        """Return what an error means."""
        return fault_of(error)

    def get(self, key: str) -> StoredObject:
        """Return an object."""

        async def receive(client: Any) -> StoredObject:
            answer = await client.get_object(Bucket=self._name, Key=key)
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
        answer = self._ask(lambda client: client.head_object(Bucket=self._name, Key=key))
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
        return self._ask(lambda client: client.list_objects_v2(**asked))

    def _ask(self, request: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """Run a request on the thread of s3fs and wait for its answer."""
        files = self._files()
        return asyncio.run_coroutine_threadsafe(request(files.s3), files.loop).result()

    def _files(self) -> Any:
        with self._lock:
            if self._made is None:
                self._made = _file_system(self._name, self._storage, self.address, self.credentials)
            return self._made


def _stat(answer: Any, nbytes: int) -> ObjectStat:
    return stat_of(nbytes, answer.get("ETag"), answer["LastModified"].astimezone(UTC))


def _path(key: str) -> str:
    """Return a key as the rest of this package names it; one that it cannot name ends the listing."""
    path = key.strip("/")
    if "//" in path:
        msg = f"key with an empty path segment: {key}"
        raise ValueError(msg)
    return path


def _file_system(name: str, storage: StorageConfig, address: Address, credentials: Credentials | None) -> Any:
    from s3fs import S3FileSystem

    scheme, _, host = address.endpoint.partition("://")
    files = S3FileSystem(
        # The library puts the bucket into the host name by itself.
        endpoint_url=f"{scheme}://{host.removeprefix(f'{name}.') if address.virtual else host}",
        client_kwargs={"region_name": address.region},
        config_kwargs={
            "s3": {"addressing_style": "virtual" if address.virtual else "path"},
            "retries": {"mode": "standard", "total_max_attempts": 1},
            "connect_timeout": min(CONNECT_SECONDS, storage.timeout_seconds),
            "read_timeout": silence_seconds(storage),
            "max_pool_connections": concurrency(storage),
            # Not every server knows the checksums that AWS has added.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        },
        session=_session(os.getpid()),
        skip_instance_cache=True,
        use_listings_cache=False,
        **({"anon": True} if credentials is None else _keys(credentials)),
    )
    files.retries = 1  # tries, of what it writes in parts
    files.connect()
    files.s3.meta.events.register("before-call.s3", _stay_in_region)
    return files


def _keys(credentials: Credentials) -> dict[str, str | None]:
    from botocore.exceptions import BotoCoreError

    try:
        key, secret, token = credentials.find()
    except BotoCoreError as error:
        raise LookUpError(type(error).__name__) from None  # its text may quote what it found
    return {
        "key": key.get_secret_value(),
        "secret": secret.get_secret_value(),
        "token": None if token is None else token.get_secret_value(),
    }


@lru_cache(maxsize=1)
def _session(process: int) -> Any:
    """Return what all buckets of a process share: the description of the service. It finds no keys and no profile."""
    from aiobotocore.credentials import AioCredentialResolver
    from aiobotocore.session import AioSession

    for library in ("botocore", "aiobotocore"):  # at their most talkative they write down key ids
        logging.getLogger(library).setLevel(logging.INFO)
    nothing: dict[str, Any] = {"profile": (None, None, None, None)}
    nothing |= dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    session = AioSession(session_vars=nothing)
    session.register_component("credential_provider", AioCredentialResolver([]))
    return session


def _stay_in_region(context: dict[str, Any], **_: Any) -> None:
    """Keep the library from requests of its own that look for another region."""
    context.setdefault("s3_redirect", {})["redirected"] = True
