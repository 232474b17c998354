"""Whether a stored object is as long as it has to be: one that was cut may decode all the same, or end the process."""

from typing import Any

import zarr

from headrace.objects.fetch import HEAD_NBYTES, Data


def refuse_cut_of(array: zarr.Array[Any], head: Data | None, nbytes: int) -> None:
    """Look at an object of an array as :func:`refuse_cut` does, where its codec would not notice that it was cut."""
    sharded = array.shards is not None
    if sharded or any("Blosc" in type(c).__name__ for c in array.compressors[-1:]):
        refuse_cut(head, nbytes, sharded=sharded)


def refuse_cut(head: Data | None, nbytes: int, *, sharded: bool = False) -> None:
    """Refuse a cut object: an empty shard is fill, and Blosc reads on beyond the end.

    Parameters
    ----------
    head
        The first bytes; None: absent.
    nbytes
        Of the whole object.
    sharded
        Whether it is a shard, else a chunk of Blosc.

    Raises
    ------
    EOFError
        Bytes lack.
    """
    if head is None:
        return
    if nbytes < HEAD_NBYTES:
        msg = f"{nbytes} bytes stored, too few for any chunk"
        raise EOFError(msg)
    if not sharded and nbytes != (whole := int.from_bytes(head[12:16], "little")):
        msg = f"{nbytes} bytes stored of {whole}"
        raise EOFError(msg)
