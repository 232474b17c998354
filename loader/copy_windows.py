"""Copy windows out of a pool, compiled: long ones with stores that bypass the cache.

A batch of long windows is larger than the cache nearby, and others are made before anybody reads it. An ordinary store
fetches each line of it from memory first and drives the pool out of the cache; a store that bypasses the cache does
neither, so that the speed does not depend on how many batches are under way.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from headrace.compiled import compiled

_LINE = 16
"""float32 values of a cache line, which is stored as a whole."""
_SHORTEST = 8 * _LINE
"""Values of a window from which on its whole lines are worth to be treated apart from its ends."""
_LEAST_NBYTES = 2**20
"""Bytes of a batch from which on it is not expected to stay in the cache until it is used."""


def _storing_lines(_typing: Any, to: Any, source: Any, count: Any) -> Any:
    """Copy whole cache lines from any address of float32 values to the first address of a line, past the cache."""
    nbytes = 4 * _LINE

    def generate(context: Any, builder: ir.IRBuilder, _signature: Any, arguments: Any) -> Any:
        place, origin, number = arguments
        line = ir.VectorType(ir.FloatType(), _LINE).as_pointer()
        before, loop = builder.block, builder.append_basic_block("line")
        after = builder.append_basic_block("lines_stored")
        zero, one = ir.Constant(number.type, 0), ir.Constant(number.type, 1)
        builder.cbranch(builder.icmp_signed(">", number, zero), loop, after)
        builder.position_at_end(loop)
        turn = builder.phi(number.type)
        offset = builder.mul(turn, ir.Constant(number.type, nbytes))
        values = builder.load(builder.inttoptr(builder.add(origin, offset), line), align=4)
        store = builder.store(values, builder.inttoptr(builder.add(place, offset), line), align=nbytes)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        following = builder.add(turn, one)
        turn.add_incoming(zero, before)
        turn.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, number), loop, after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


def _fencing(_typing: Any) -> Any:
    """Let no other core see what is stored later before what is stored so far."""

    def generate(context: Any, builder: ir.IRBuilder, _signature: Any, _arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


_store_lines: Any = intrinsic(_storing_lines)
_fence: Any = intrinsic(_fencing)


@compiled
def _copy(pool: Any, width: Any, row: Any, length: Any, out: Any) -> Any:
    for window in range(row.size):
        source, place = row[window] * width, window * length
        if source < 0 or source + length > pool.size:
            return False
        for k in range(length):
            out[place + k] = pool[source + k]
    return True


@compiled
def _stream(pool: Any, width: Any, row: Any, length: Any, out: Any) -> Any:
    source_address, place_address = pool.ctypes.data, out.ctypes.data
    for window in range(row.size):
        source, place = row[window] * width, window * length
        if source < 0 or source + length > pool.size:
            return False
        head = (-(place_address // 4 + place)) % _LINE
        lines = (length - head) // _LINE
        for k in range(head):
            out[place + k] = pool[source + k]
        _store_lines(place_address + 4 * (place + head), source_address + 4 * (source + head), lines)
        for k in range(head + lines * _LINE, length):
            out[place + k] = pool[source + k]
    _fence()
    return True


def copy_windows(pool: NDArray[np.float32], row: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    """Copy windows, each of consecutive rows, one after the other.

    Parameters
    ----------
    pool
        float32 [rows, V], contiguous.
    row
        int64 [B], first row of each window.
    out
        float32 [B, N · V], contiguous; filled.

    Raises
    ------
    IndexError
        A window is not inside the pool.
    """
    length = out.shape[1]
    copy = _stream if length >= _SHORTEST and out.nbytes >= _LEAST_NBYTES else _copy
    if not copy(pool.reshape(-1), pool.shape[1], row, length, out.reshape(-1)):
        raise IndexError("a window is not inside the pool")
