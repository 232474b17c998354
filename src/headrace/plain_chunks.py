"""Decode stored chunks in the calling thread, where their codecs allow it; Zarr's own way costs a millisecond a chunk.

Covered are chunks of one compressor or none, which is how most stores are written. Everything else (shards, filters,
transposed chunks) is left to Zarr, which gives the same values.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numcodecs
import numpy as np
import zarr
from numcodecs import blosc
from numpy.typing import NDArray
from zarr.core.metadata import ArrayV2Metadata

from headrace.schemas.grid import ChunkGrid
from headrace.scratch import LEAST_NBYTES, Lease

_DECOMPRESSORS: dict[str, Callable[..., Any]] = {
    "blosc": numcodecs.Blosc().decode,
    "zstd": numcodecs.Zstd().decode,
    "gzip": numcodecs.GZip().decode,
}
"""Codecs of format 3 whose stored bytes say how they are to be decoded."""


class Decoder(Protocol):
    """Stored bytes → the whole chunk, axes as stored; raises as its codec does."""

    @property
    def blosc(self) -> bool:
        """Whether the stored bytes begin with Blosc's header."""
        ...

    def __call__(self, data: Any, memory: NDArray[np.uint8] | None = None) -> NDArray[Any]:
        """Decode one chunk, into ``memory`` where that is given and the codec can."""
        ...

    def memory(self, lease: Lease | None) -> NDArray[np.uint8] | None:
        """Lease memory for one decoded chunk; None where fresh memory is as good."""
        ...


def decoder_of(array: "zarr.Array[Any]") -> Decoder | None:
    """Return what decodes a stored chunk of an array; None where only Zarr can."""
    metadata = array.metadata
    if isinstance(metadata, ArrayV2Metadata):
        if metadata.filters:
            return None
        compressor: Any = metadata.compressor
        decompress = None if compressor is None else compressor.decode
        return _decoder(decompress, array, np.dtype(array.dtype), metadata.order)
    codecs = [codec.to_dict() for codec in metadata.codecs]
    names = [str(codec["name"]) for codec in codecs]
    if names[:1] != ["bytes"] or len(names) > 2 or not set(names[1:]) <= set(_DECOMPRESSORS):
        return None
    settings: Any = codecs[0].get("configuration", {})
    stored = np.dtype(array.dtype).newbyteorder(">" if settings.get("endian") == "big" else "<")
    return _decoder(_DECOMPRESSORS[names[1]] if names[1:] else None, array, stored, "C")


def _decoder(decompress: Callable[..., Any] | None, array: "zarr.Array[Any]", stored: Any, order: Any) -> Decoder:
    return _Plain(decompress, array.chunks, np.dtype(array.dtype), stored, order)


class _Plain:
    """See :class:`Decoder`."""

    def __init__(
        self, decompress: Callable[..., Any] | None, shape: tuple[int, ...], dtype: Any, stored: Any, order: Any
    ) -> None:
        self._decompress, self._shape, self._dtype, self._stored, self._order = decompress, shape, dtype, stored, order
        self._nbytes = math.prod(shape) * stored.itemsize
        self.blosc = isinstance(getattr(decompress, "__self__", None), numcodecs.Blosc)
        if self.blosc:  # what the codec calls, once it has spent some microseconds on what the bytes may be
            self._decompress = blosc.decompress

    def __call__(self, data: Any, memory: NDArray[np.uint8] | None = None) -> NDArray[Any]:
        if self._decompress is None:
            values = data
        elif memory is None or int.from_bytes(data[4:8], "little") != self._nbytes:  # of other sizes the shape tells
            values = self._decompress(data)
        else:
            self._decompress(data, memory)
            values = memory
        flat = np.frombuffer(values, dtype=self._stored)
        return flat.reshape(self._shape, order=self._order).astype(self._dtype, copy=False)

    def memory(self, lease: Lease | None) -> NDArray[np.uint8] | None:
        return lease.take(self._nbytes) if lease is not None and self.blosc and self._nbytes >= LEAST_NBYTES else None


def absent_value(array: "zarr.Array[Any]") -> Any:
    """Return what every value of an absent chunk is: the fill value; format 2 need not name one, and means Zarr's."""
    fill: Any = array.metadata.fill_value
    return array.metadata.dtype.default_scalar() if fill is None else fill


def read_plain(
    array: "zarr.Array[Any]",
    grid: ChunkGrid,
    chunks: Iterable[tuple[int, int, NDArray[Any] | None]],
    basins: slice,
    steps: slice,
) -> NDArray[Any]:
    """Put chunks together to a basin × step block, [S, T] whatever the stored order.

    Parameters
    ----------
    array, grid
        The open array and its grid.
    chunks
        Of every stored chunk that the block meets: basin chunk, time chunk, and its values with the axes as stored;
        None: absent, so fill values.
    basins, steps
        The block.
    """
    shape = (basins.stop - basins.start, steps.stop - steps.start)
    block: NDArray[Any] | None = None
    for b, t, values in chunks:
        rows, columns = grid.basin.bounds(b), grid.time.bounds(t)
        inside = (
            slice(max(rows[0], basins.start), min(rows[1], basins.stop)),
            slice(max(columns[0], steps.start), min(columns[1], steps.stop)),
        )
        part: Any = absent_value(array) if values is None else cut(values, grid, (rows[0], columns[0]), *inside)
        if block is None:
            block = np.empty(shape[::-1], array.dtype).T if grid.time_first else np.empty(shape, array.dtype)
        block[
            inside[0].start - basins.start : inside[0].stop - basins.start,
            inside[1].start - steps.start : inside[1].stop - steps.start,
        ] = part
    return np.empty(shape, array.dtype) if block is None else block


def cut(values: NDArray[Any], grid: ChunkGrid, start: tuple[int, int], basins: slice, steps: slice) -> NDArray[Any]:
    """Return the part of a chunk that lies in a block, [basins, steps].

    Parameters
    ----------
    values
        The whole chunk, axes as stored.
    grid, start
        Its array's grid; its first basin and its first step.
    basins, steps
        The block, inside the chunk.
    """
    if grid.extra:
        values = values[tuple(0 if axis in grid.extra else slice(None) for axis in range(values.ndim))]
    if not grid.has_time:
        values = values[:, None]
    elif grid.time_first:
        values = values.T
    rows = slice(basins.start - start[0], basins.stop - start[0])
    return values[rows, steps.start - start[1] : steps.stop - start[1]]
