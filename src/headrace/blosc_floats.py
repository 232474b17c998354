"""Blosc chunks of plain floats → float32 rows: many chunks in one call that does not hold the interpreter lock.

A small chunk decodes faster than threads hand the lock to each other, so that every step of Python between two chunks
costs more than it does. The C function is the one that numcodecs calls, taken from its module.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numcodecs import blosc
from numpy.typing import NDArray
from zarr.core.metadata import ArrayV2Metadata

from headrace.compiled import compiled
from headrace.decode_floats import FloatRule, decode_row
from headrace.store import StoredArray

_HEADER_NBYTES = 16


@dataclass(frozen=True, slots=True)
class FloatChunks:
    """How every stored chunk of an array lies in memory once it is decompressed: [basins, steps] in C order.

    Parameters
    ----------
    dtype
        float32 or float64 in the byte order of this machine.
    num_rows, num_steps
        Shape of a chunk.
    """

    dtype: "np.dtype[Any]"
    num_rows: int
    num_steps: int

    @property
    def nbytes(self) -> int:
        """Bytes of a chunk."""
        return self.dtype.itemsize * self.num_rows * self.num_steps


def float_chunks(stored: StoredArray) -> FloatChunks | None:
    """Return the layout of an array's chunks; None where :func:`decode_chunks` cannot read them."""
    dtype, metadata = stored.dtype, stored.array.metadata
    if stored.decoder is None or not stored.decoder.blosc or stored.grid.time_first or not _decompressor():
        return None
    if isinstance(metadata, ArrayV2Metadata):
        plain = metadata.order == "C"
    else:
        settings: Any = metadata.codecs[0].to_dict().get("configuration", {})
        plain = settings.get("endian") != "big"
    if not plain or dtype.kind != "f" or dtype.itemsize not in (4, 8) or dtype.str[0] != "<" or not dtype.isnative:
        return None
    return FloatChunks(dtype, stored.grid.basin.chunk_size, stored.grid.time.chunk_size)


def decode_chunks(
    chunks: FloatChunks,
    rule: FloatRule,
    stored: Sequence[Any],
    edges: NDArray[np.int64],
    out: NDArray[np.float32],
    *,
    absent: np.float32,
    memory: NDArray[np.uint8],
) -> bool:
    """Decode neighbouring chunks side by side.

    Parameters
    ----------
    chunks
        Their layout.
    rule
        What their values mean.
    stored
        Bytes of each chunk; None: absent.
    edges
        int64 [len(stored) + 1], first column of each chunk, and the end of the last; a chunk is cut off there.
    out
        float32 [S, T], contiguous, written; the first rows of every chunk.
    absent
        Value of absent chunks.
    memory
        uint8, as much as one chunk takes.

    Returns
    -------
    bool
        Whether all could be decoded. If not, one is damaged, and who reads them one by one will be told which.

    Raises
    ------
    IndexError
        The chunks do not fit: compiled code would write elsewhere.
    """
    widths = np.diff(edges)
    fits = edges.size == len(stored) + 1 and edges[0] >= 0 and edges[-1] <= out.shape[1] and (widths >= 0).all()
    fits = fits and (widths <= chunks.num_steps).all() and out.shape[0] <= chunks.num_rows
    if not fits or memory.size != chunks.nbytes:
        raise IndexError("the chunks do not fit the rows")
    if any(data is not None and not _is_whole(data) for data in stored):
        return False
    places = np.array([0 if data is None else _address(data) for data in stored], dtype=np.int64)
    values = memory.view(chunks.dtype)
    done: int = _decode(
        _decompressor(), places, edges, values, chunks.num_steps, rule.flags, rule.low, rule.high, absent, out
    )
    return done == len(stored)


def _is_whole(data: Any) -> bool:
    """Return whether as many bytes are there as Blosc's header says; it would read on beyond the end."""
    return len(data) >= _HEADER_NBYTES and int.from_bytes(data[12:_HEADER_NBYTES], "little") == len(data)


def _address(data: Any) -> int:
    place: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return place


@lru_cache(maxsize=1)
def _decompressor() -> int:
    """Return the address of Blosc's function that decompresses in the calling thread; 0 where it is not to be had."""
    try:
        function = ctypes.CDLL(blosc.__file__).blosc_decompress_ctx
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _decompressing(_typing: Any, function: Any, source: Any, target: Any, nbytes: Any) -> Any:
    """Call ``int function(const void *source, void *target, size_t nbytes, int num_threads)``."""

    def generate(_context: Any, builder: ir.IRBuilder, _signature: Any, arguments: Any) -> Any:
        address, origin, goal, size = arguments
        memory, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(number, [memory, memory, size.type, number])
        places = (builder.inttoptr(place, memory) for place in (origin, goal))
        return builder.call(builder.inttoptr(address, kind.as_pointer()), [*places, size, ir.Constant(number, 1)])

    return types.int32(types.intp, types.intp, types.intp, types.intp), generate


_decompress: Any = intrinsic(_decompressing)


@compiled
def _decode(
    function: Any,
    places: Any,
    edges: Any,
    values: Any,
    pitch: Any,
    flags: Any,
    low: Any,
    high: Any,
    absent: Any,
    out: Any,
) -> Any:
    """Return how many chunks were decoded before one that is damaged."""
    for i in range(places.size):
        first, last = edges[i], edges[i + 1]
        if places[i] == 0:
            for line in range(out.shape[0]):
                for k in range(first, last):
                    out[line, k] = absent
            continue
        if _decompress(function, places[i], values.ctypes.data, values.nbytes) != values.nbytes:
            return i
        for line in range(out.shape[0]):
            row = values[line * pitch : line * pitch + last - first]
            decode_row(row, flags, low, high, out[line, first:last])
    return places.size
