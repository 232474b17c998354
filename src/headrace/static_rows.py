"""The values of one basin attribute as stored, with what could not be read marked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.decode import decode
from headrace.schemas.config import BadChunkPolicy
from headrace.schemas.errors import DamagedChunkError, ReadError, describe
from headrace.schemas.variables import DecodeRule
from headrace.store import StoredArray

AREA_PREFIX = "@area:"
"""Table ``statics`` keeps the area vector of ``per_area: NAME`` under the variable name ``@area:NAME``."""

STORED, ABSENT, DAMAGED = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticRows:
    """One attribute of every basin of a store.

    Parameters
    ----------
    raw
        Stored values [rows]; the fill value where the chunk is absent, 0 where it is damaged.
    state
        uint8 [rows], ``STORED``, ``ABSENT`` or ``DAMAGED``.
    """

    raw: NDArray[Any]
    state: NDArray[np.uint8]

    def decoded(self, rule: DecodeRule) -> NDArray[np.float64]:
        """Return canonical values, float64 [rows], NaN where missing."""
        lacking = (self.state == DAMAGED) | (rule.absent_is_missing & (self.state == ABSENT))
        return np.where(lacking, np.nan, decode(self.raw[:, None], rule)[:, 0])


def read_static_rows(stored: StoredArray, policy: BadChunkPolicy) -> StaticRows:
    """Read an attribute.

    Raises
    ------
    ReadError
        A chunk cannot be read, is not as it was listed, or cannot be decoded and the policy is ``error``.
    """
    grid = stored.grid.basin
    raw = np.zeros(grid.extent, dtype=stored.dtype.newbyteorder("="))
    state = np.full(grid.extent, STORED, dtype=np.uint8)
    for chunk in range(grid.num_chunks):
        rows = slice(*grid.bounds(chunk))
        fetch = stored.fetch(rows, slice(0, 1))
        key, listed = stored.object_key(chunk, 0), stored.stat(chunk, 0)
        while fetch.stat(key) != listed:
            if not fetch.again([key]):
                raise ReadError(_changed(stored, chunk))
        if listed is None:
            state[rows] = ABSENT
        try:
            raw[rows] = stored.read(rows, slice(0, 1), fetch)[:, 0]
        except DamagedChunkError:
            if policy == "error":
                raise
            state[rows] = DAMAGED
        if fetch.stat(key) != listed:  # it was asked for anew, or rewritten
            raise ReadError(_changed(stored, chunk))
    return StaticRows(raw=raw, state=state)


def _changed(stored: StoredArray, chunk: int) -> str:
    return describe(
        "chunk changed while it was read",
        where=f"{stored.uri}, {stored.object_key(chunk, 0)}",
        expected="the object that was listed",
        got="another one, or none",
        fix="wait until the store is written, then run the same command again",
    )


def areas_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return attribute values as basin areas: what is not above 0 is missing."""
    return np.where(values > 0, values, np.nan)
