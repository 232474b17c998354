"""A connection to one bucket: what is asked of either client library, in the same terms, one try each."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from headrace.objects.connection import Address
from headrace.objects.credentials import Credentials
from headrace.objects.faults import Fault
from headrace.objects.stat import ObjectStat

PAGE: Final = 1000
"""Keys that a server lists in one answer."""
MULTIPART_NBYTES: Final = 64 * 2**20
"""Objects larger than this are written in parts."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it was received: its bytes, and what the same answer says of it."""

    data: memoryview
    stat: ObjectStat


class Bucket(Protocol):
    """Requests to one bucket through one client library; used by several threads at once.

    Nothing is tried again here. A request that fails raises one of ``errors``, and :meth:`fault_of` says what it means.
    """

    @property
    def address(self) -> Address:
        """Where requests go."""
        ...

    @property
    def credentials(self) -> Credentials | None:
        """Who signs them; None: nobody."""
        ...

    @property
    def heard(self) -> bool:
        """Whether an answer has begun to come, ever."""
        ...

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a request that fails may raise."""
        ...

    def fault_of(self, error: Exception) -> Fault:
        """Return what an error of a request means."""
        ...

    def get(self, key: str) -> StoredObject:
        """Return an object with what the answer says of it."""
        ...

    def head(self, key: str) -> ObjectStat:
        """Return size and fingerprint of an object."""
        ...

    def page(self, folder: str, after: str) -> list[tuple[str, ObjectStat]]:
        """Return the next keys below a folder and what they are, in order; fewer than ``PAGE`` are the last."""
        ...

    def prove_empty(self, folder: str, after: str) -> None:
        """Raise unless what :meth:`page` took for an empty listing is one."""
        ...

    def folders(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the keys of folders and of objects directly in a folder."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object."""
        ...


def stat_of(nbytes: int, etag: str | None, modified: Any) -> ObjectStat:
    """Return size and fingerprint of an object; a server without etags is taken by its time, in whole seconds.

    Parameters
    ----------
    nbytes
        Its size.
    etag
        As the server gives it.
    modified
        Time of its last change, in UTC.
    """
    tag = (etag or "").removeprefix("W/").strip('"') or f"{modified:%Y%m%dT%H%M%SZ}"
    return ObjectStat(nbytes=nbytes, fingerprint=f"{nbytes}:{tag}")
