"""Which client library talks to object stores; neither is loaded before the first request."""

from typing import Literal

from headrace.objects.bucket import Bucket
from headrace.schemas.storage_config import StorageConfig


def library_of(storage: StorageConfig) -> Literal["obstore", "s3fs"]:
    """Return the library that ``storage.client`` comes to on this machine."""
    if storage.client != "auto":
        return storage.client
    try:
        import obstore  # noqa: F401 - whether it can be loaded is the question
    except ImportError:
        return "s3fs"
    return "obstore"


def connect(bucket: str, storage: StorageConfig) -> Bucket:
    """Return a connection to a bucket; nothing is sent yet.

    Raises
    ------
    ConfigError
        There are no credentials, or the address cannot be used.
    """
    if library_of(storage) == "s3fs":
        from headrace.objects.s3fs_bucket import S3fsBucket

        return S3fsBucket(bucket, storage)
    from headrace.objects.obstore_bucket import ObstoreBucket

    return ObstoreBucket(bucket, storage)
