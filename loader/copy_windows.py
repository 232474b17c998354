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


# One flat function: calls in its loop, for the ends of windows and for targets, cost it a fifth of its speed.
@compiled
def _copy_all(
    x: Any, y: Any, x_width: Any, y_width: Any, x_row: Any, y_row: Any, x_out: Any, y_out: Any, past_cache: Any
) -> Any:
    """Copy inputs and targets in turn: fetching targets, which lie far apart, costs nothing beside a copy of inputs."""
    count = x_row.size
    x_length, y_length = x_out.size // max(count, 1), y_out.size // max(count, 1)
    origin, goal = x.ctypes.data, x_out.ctypes.data
    for window in range(count):
        source, place = y_row[window] * y_width, window * y_length
        if source < 0 or source + y_length > y.size:
            return False
        for k in range(y_length):
            y_out[place + k] = y[source + k]
        source, place = x_row[window] * x_width, window * x_length
        if source < 0 or source + x_length > x.size:
            return False
        head = (-(goal // 4 + place)) % _LINE if past_cache else x_length
        lines = (x_length - head) // _LINE
        for k in range(head):
            x_out[place + k] = x[source + k]
        _store_lines(goal + 4 * (place + head), origin + 4 * (source + head), lines)
        for k in range(head + lines * _LINE, x_length):
            x_out[place + k] = x[source + k]
    _fence()
    return True


def copy_windows(
    pools: tuple[NDArray[np.float32], NDArray[np.float32]],
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    out: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> None:
    """Copy the inputs and the targets of windows, each of consecutive rows, one window after the other.

    Parameters
    ----------
    pools
        float32 [rows, Vx] and [rows, Vy], contiguous.
    rows
        int64 [B] each, first row of the inputs and of the targets of each window.
    out
        float32 [B, L · Vx] and [B, P · Vy], contiguous; filled.

    Raises
    ------
    IndexError
        A window is not inside the pool.
    """
    (x, y), (x_out, y_out) = pools, out
    past_cache = x_out.shape[1] >= _SHORTEST and x_out.nbytes >= _LEAST_NBYTES
    flat = x.reshape(-1), y.reshape(-1), x.shape[1], y.shape[1]
    if not _copy_all(*flat, *rows, x_out.reshape(-1), y_out.reshape(-1), past_cache):
        raise IndexError("a window is not inside the pool")
