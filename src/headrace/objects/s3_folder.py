"""A folder of objects under a prefix of an S3 bucket."""

from headrace.objects.client import client_for
from headrace.objects.location import Location
from headrace.objects.stat import ObjectStat
from headrace.schemas.storage_config import StorageConfig


class S3Folder:
    """Objects under one prefix; see :class:`headrace.objects.folder.ObjectFolder`."""

    def __init__(self, location: Location, storage: StorageConfig) -> None:
        self.location, self.storage = location, storage

    @property
    def url(self) -> str:
        """The URL."""
        return self.location.url

    def read(self, name: str) -> bytes:
        """Return an object's bytes."""
        found = client_for(self.location.bucket, self.storage).get(self.location.joined(name))
        if found is None:
            raise FileNotFoundError(f"{self.url}/{name}")
        return bytes(found.data)

    def write(self, name: str, data: bytes) -> None:
        """Put an object; the server shows it whole or not at all."""
        client_for(self.location.bucket, self.storage).put(self.location.joined(name), data)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of objects, sorted."""
        return list(self.stats(prefix))

    def stats(self, prefix: str = "") -> dict[str, ObjectStat]:
        """Return size and fingerprint of objects, in order of their names."""
        folder = prefix.rpartition("/")[0]
        below = self.location.joined(folder) if folder else self.location.key
        found = client_for(self.location.bucket, self.storage).listing(below)
        start = len(self.location.key) + 1 if self.location.key else 0
        return {key[start:]: found[key] for key in sorted(found) if key[start:].startswith(prefix)}

    def stat(self, name: str) -> ObjectStat | None:
        """Return size and fingerprint of an object, or None where there is none."""
        return client_for(self.location.bucket, self.storage).stat(self.location.joined(name))

    def delete(self, name: str) -> None:
        """Remove an object if it is there."""
        client_for(self.location.bucket, self.storage).delete(self.location.joined(name))
