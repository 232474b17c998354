"""Size and identity of one stored object."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStat:
    """Size and identity of one stored object.

    Parameters
    ----------
    nbytes
        Stored bytes.
    fingerprint
        Text that changes when the object is rewritten: size and modification time in nanoseconds of a file, size and
        etag of an object in a bucket.
    """

    nbytes: int
    fingerprint: str
