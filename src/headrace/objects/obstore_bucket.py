"""A bucket through obstore, the faster of the two client libraries; its own tries are off."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.objects.bucket import MULTIPART_NBYTES, PAGE, StoredObject, stat_of
from headrace.objects.connection import CONNECT_SECONDS, Address, resolve, silence_seconds
from headrace.objects.credentials import Credentials, find_credentials
from headrace.objects.faults import CutShortError, Fault, FaultError, NoProgressError, fault_of
from headrace.objects.limits import concurrency
from headrace.objects.proven_empty import refuse_unless_listing
from headrace.objects.stat import ObjectStat
from headrace.schemas.storage_config import StorageConfig

if TYPE_CHECKING:
    from obstore.store import S3Store


class ObstoreBucket:
    """See :class:`headrace.objects.bucket.Bucket`; nothing is sent before the first request.

    Raises
    ------
    ConfigError
        There are no credentials, or the address cannot be used.
    """

    def __init__(self, name: str, storage: StorageConfig) -> None:
        import obstore
        from obstore.exceptions import BaseError

        self._get = obstore.get
        self.credentials: Credentials | None = find_credentials(storage, f"s3://{name}")
        self.address: Address = resolve(name, storage, None if self.credentials is None else self.credentials.region)
        self.errors: tuple[type[Exception], ...] = (
            BaseError, CutShortError, FaultError, NoProgressError, OSError, ValueError,
        )  # fmt: skip
        self.heard = False
        self._name, self._silence = name, silence_seconds(storage)
        self._store = _store(name, storage, self.address, self.credentials)

    def fault_of(self, error: Exception) -> Fault:
        """Return what an error means."""
        return fault_of(error)

    def get(self, key: str) -> StoredObject:
        """Return an object."""
        answer = self._get(self._store, key)
        self.heard = True
        meta = answer.meta
        data = memoryview(answer.bytes())
        if len(data) != meta["size"]:
            msg = f"{len(data)} of {meta['size']} bytes came"
            raise CutShortError(msg)
        return StoredObject(data, _stat(meta))

    def head(self, key: str) -> ObjectStat:
        """Return size and fingerprint of an object."""
        import obstore

        return _stat(obstore.head(self._store, key))

    def page(self, folder: str, after: str) -> list[tuple[str, ObjectStat]]:
        """Return the next keys below a folder."""
        import obstore

        pages = obstore.list(self._store, folder or None, offset=after or None, chunk_size=PAGE)
        return [(row["path"], _stat(row)) for row in next(iter(pages), [])]

    def prove_empty(self, folder: str, after: str) -> None:
        """Look at the document of a listing that came out empty."""
        self._refuse_unless_listing(folder, **({"start-after": after} if after else {}))

    def folders(self, folder: str) -> tuple[list[str], list[str]]:
        """Return what lies directly in a folder."""
        import obstore

        found = obstore.list_with_delimiter(self._store, folder or None)
        folders, objects = list(found["common_prefixes"]), [row["path"] for row in found["objects"]]
        if not folders and not objects:
            self._refuse_unless_listing(folder, delimiter="/")
        return folders, objects

    def _refuse_unless_listing(self, folder: str, **asked: str) -> None:
        asked = {"prefix": f"{folder}/" if folder else "", **asked}
        refuse_unless_listing(self._name, self.address, self.credentials, asked=asked, seconds=self._silence)

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        import obstore

        obstore.put(self._store, key, data, use_multipart=len(data) > MULTIPART_NBYTES)

    def delete(self, key: str) -> None:
        """Remove an object."""
        import obstore

        obstore.delete(self._store, key)


def _stat(meta: Any) -> ObjectStat:
    return stat_of(meta["size"], meta["e_tag"], meta["last_modified"])


def _store(name: str, storage: StorageConfig, address: Address, credentials: Credentials | None) -> "S3Store":
    from obstore.store import S3Store

    # The library would take every AWS_ variable that is left open.
    signing: dict[str, Any] = {"skip_signature": credentials is None}
    if credentials is not None:
        signing["credential_provider"] = credentials
    return S3Store(
        name,
        endpoint=address.endpoint,
        aws_endpoint_url_s3=address.endpoint,  # else the environment's would come before the one above
        region=address.region,
        virtual_hosted_style_request=address.virtual,
        disable_bulk_delete=True,  # not every server has it, or signs it alike
        client_options={
            "allow_http": address.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=min(CONNECT_SECONDS, storage.timeout_seconds)),
            "read_timeout": timedelta(seconds=silence_seconds(storage)),
            "timeout": "1h",
            "pool_max_idle_per_host": str(concurrency(storage)),
            "pool_idle_timeout": timedelta(seconds=30),
        },
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=storage.timeout_seconds)},
        **signing,
    )
