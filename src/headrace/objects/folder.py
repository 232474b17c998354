"""A folder of objects: the interface, and the choice between a disk and a bucket."""

from pathlib import Path
from typing import Protocol

from headrace.objects.local import LocalFolder
from headrace.objects.location import is_remote, parse_location
from headrace.objects.stat import ObjectStat
from headrace.schemas.storage_config import StorageConfig


class ObjectFolder(Protocol):
    """Objects by name, relative to one folder; names hold ``/`` between their parts.

    Every method raises ReadError where the folder cannot be reached or refuses; the message says what to do.
    """

    @property
    def url(self) -> str:
        """Where the folder lies: a path, or an URL."""
        ...

    def read(self, name: str) -> bytes:
        """Return an object; FileNotFoundError where it is proven absent."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write an object: afterwards, and whoever looks meanwhile, sees it whole, or as it was."""
        ...

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with a text, those in folders below included, sorted; [] without a folder."""
        ...

    def stats(self, prefix: str = "") -> dict[str, ObjectStat]:
        """Return size and fingerprint of what :meth:`names` lists, in the same order."""
        ...

    def stat(self, name: str) -> ObjectStat | None:
        """Return size and fingerprint of an object, or None where it is proven absent."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is no error."""
        ...


def open_folder(place: str | Path, storage: StorageConfig | None = None) -> ObjectFolder:
    """Return a folder; nothing is looked at yet.

    Parameters
    ----------
    place
        Path, or ``s3://bucket/folder``.
    storage
        How object stores are reached; does not matter on a disk.

    Raises
    ------
    ConfigError
        An URL that is no ``s3://bucket/folder``.
    """
    if isinstance(place, Path) or not is_remote(place):
        return LocalFolder(Path(place))
    from headrace.objects.s3_folder import S3Folder  # only who names a bucket loads the client

    return S3Folder(parse_location(place), storage or StorageConfig())
