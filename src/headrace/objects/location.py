"""``s3://bucket/prefix`` taken apart, and put together again."""

import re
from dataclasses import dataclass

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.logins import without_login

_SCHEME = "s3://"
_BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,253}[a-zA-Z0-9]")


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a bucket.

    Parameters
    ----------
    bucket
        Name of the bucket.
    key
        Key or prefix without slashes at its ends; '' is the bucket itself.
    """

    bucket: str
    key: str

    @property
    def url(self) -> str:
        """The location as text."""
        return f"{_SCHEME}{self.bucket}/{self.key}".rstrip("/")

    def joined(self, name: str) -> str:
        """Return the key of a name below this location."""
        return f"{self.key}/{name}" if self.key else name


def is_remote(uri: str) -> bool:
    """Return whether a locator means an object store rather than a disk."""
    return "://" in uri


def parse_location(url: str, *, where: str = "") -> Location:
    """Take an URL apart.

    Parameters
    ----------
    url
        Such as ``s3://bucket/folder/store.zarr``; slashes at its end do not count.
    where
        What to call it in a message: the dotted key of the configuration, or an option.

    Raises
    ------
    ConfigError
        It is of another scheme, names no bucket, or holds user name and password, which the message does not repeat.
    """
    bucket, _, key = url.removeprefix(_SCHEME).partition("/")
    named = _BUCKET.fullmatch(bucket) is not None
    shown = url if url.startswith(_SCHEME) and named else without_login(url)
    place = f"{where}: {shown}" if where else shown
    if not url.startswith(_SCHEME):
        raise ConfigError(
            describe(
                "scheme is not supported", where=place, expected="a path, or s3://bucket/folder",
                got=url.partition("://")[0] + "://",
                fix="give object stores as s3://bucket/folder, with storage.endpoint_url where they are not AWS",
            )
        )  # fmt: skip
    segments = key.strip("/").split("/") if key.strip("/") else []
    if not named or not all(s not in ("", ".", "..") for s in segments):
        instead = "user name or password" if "@" in url else f"bucket {bucket!r}" if bucket else "no bucket"
        raise ConfigError(
            describe(
                "URL of an object store cannot be read", where=place, expected="s3://bucket/folder",
                got=instead if not named else f"an empty or relative part in {key!r}",
                fix="name the bucket first; the address of the server goes to storage.endpoint_url, keys to the "
                "environment, storage.profile or ~/hydro_setting.yml",
            )
        )  # fmt: skip
    return Location(bucket, "/".join(segments))
