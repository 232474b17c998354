"""How buckets are reached, in words and without a secret: what configuration, environment and files come to."""

from collections.abc import Iterable

from headrace.objects.client_library import library_of
from headrace.objects.connection import resolve
from headrace.objects.credentials import find_credentials
from headrace.objects.limits import concurrency
from headrace.objects.location import is_remote, parse_location
from headrace.schemas.storage_config import StorageConfig


def ways_to(uris: Iterable[str], storage: StorageConfig) -> list[str]:
    """Return a sentence for each bucket among some paths and URLs; connects to nothing.

    Raises
    ------
    ConfigError
        There are no credentials.
    """
    return [
        _way_to(bucket, storage) for bucket in dict.fromkeys(parse_location(u).bucket for u in uris if is_remote(u))
    ]


def _way_to(bucket: str, storage: StorageConfig) -> str:
    credentials = find_credentials(storage, f"s3://{bucket}")
    address = resolve(bucket, storage, None if credentials is None else credentials.region)
    place = "host name" if address.virtual else "path"
    who = "without credentials" if credentials is None else f"with credentials from {credentials.source}"
    by = " through s3fs" if library_of(storage) == "s3fs" else ""
    return (
        f"s3://{bucket} at {address.endpoint} (bucket in the {place}, region {address.region}), {who}, "
        f"{concurrency(storage)} requests at once{by}"
    )
