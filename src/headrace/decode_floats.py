"""What :func:`headrace.decode.decode` does for stored floats that nothing scales: compiled, without interpreter lock.

Most stores hold canonical values with flags and bounds. Equality with :func:`~headrace.decode.decode`, bit for bit, is
tested; whatever is not covered here is left to it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headrace.compiled import compiled
from headrace.decode import scales
from headrace.schemas.variables import DecodeRule

_TYPES: Final = (np.dtype(np.float32), np.dtype(np.float64))
_MISSING: Final = np.float32(np.nan)


@dataclass(frozen=True, slots=True)
class FloatRule:
    """A rule that scales nothing, in numbers of the stored type.

    Parameters
    ----------
    flags
        Stored type [F], values that mean missing.
    low, high
        Stored type, bounds inclusive; infinite where there is none.
    """

    flags: NDArray[Any]
    low: Any
    high: Any


@lru_cache(maxsize=256)
def float_rule(rule: DecodeRule, dtype: "np.dtype[Any]") -> FloatRule | None:
    """Return a rule as the functions here take it; None where only :func:`headrace.decode.decode` can apply it."""
    if dtype not in _TYPES or scales(rule):
        return None
    kind = dtype.type
    with np.errstate(over="ignore"):
        return FloatRule(
            flags=np.array([kind(flag) for flag in rule.missing_values if not np.isnan(flag)], dtype=dtype),
            low=kind(-np.inf if rule.valid_min is None else rule.valid_min),
            high=kind(np.inf if rule.valid_max is None else rule.valid_max),
        )


@compiled
def decode_row(raw: Any, flags: Any, low: Any, high: Any, out: Any) -> None:
    """Decode a contiguous row of stored floats into float32; called by compiled code, which checks lengths."""
    for i in range(raw.size):
        value = raw[i]
        narrow = np.float32(value)
        # Not-a-number fails every comparison; infinite values, stored or reached by the cast, are missing.
        fits = (value >= low) & (value <= high) & (abs(narrow) < np.float32(np.inf))
        out[i] = narrow if fits else _MISSING
    for flag in flags:
        for i in range(raw.size):
            out[i] = _MISSING if raw[i] == flag else out[i]


@compiled
def _decode_rows(raw: Any, pitch: int, flags: Any, low: Any, high: Any, out: Any, first: int, last: int) -> None:
    for line in range(out.shape[0]):
        row = raw[line * pitch : line * pitch + last - first]
        decode_row(row, flags, low, high, out[line, first:last])


def decode_rows(raw: NDArray[Any], rule: FloatRule, out: NDArray[np.float32], first: int) -> None:
    """Decode rows into columns of rows.

    Parameters
    ----------
    raw
        Stored values [S, T], each row contiguous, writable.
    rule
        For their type.
    out
        float32 [S, C], contiguous, written from column ``first`` to ``first + T``.
    first
        First column.

    Raises
    ------
    IndexError
        The values do not fit: compiled code would write elsewhere.
    """
    num_rows, num_steps = raw.shape
    if out.shape[0] != num_rows or not 0 <= first <= out.shape[1] - num_steps:
        raise IndexError("the values do not fit the rows")
    if raw.size == 0:
        return
    flat, pitch = flat_rows(raw)
    _decode_rows(flat, pitch, rule.flags, rule.low, rule.high, out, first, first + num_steps)


def flat_rows(raw: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return values [S, T] whose rows are contiguous as one line, and how far apart in it the rows begin; not empty."""
    num_rows, num_steps = raw.shape
    if raw.flags.c_contiguous:  # which costs less to see than what follows
        return raw.reshape(-1), num_steps
    pitch = raw.strides[0] // raw.itemsize if num_rows > 1 else num_steps
    return np.lib.stride_tricks.as_strided(raw, ((num_rows - 1) * pitch + num_steps,), (raw.itemsize,)), pitch
