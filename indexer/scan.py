"""One unit's raw values to runs, moments and counts: pure, no I/O.

A small unit is decoded piece by piece as it is read, while its raw values are in the CPU cache; of a large one a few
rows are decoded at a time, so that a block stays there through all passes. A row's sums run over its own values in time
order, whatever the height of the block and the order of the dimensions in the store.
Legend: S rows, T steps, K cuts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.decode import decode
from headrace.decode_floats import decode_rows, float_rule
from headrace.indexer.runs import Runs, find_runs, join, observed_per_step, whole_rows
from headrace.indexer.sums import add_rows
from headrace.indexer.units import ScanUnit
from headrace.schemas.moments import Moments

BLOCK_VALUES = 1 << 17
"""Values decoded at once: with raw values and temporaries about two megabytes, the cache of one core."""
SMALL_VALUES = 1 << 20
"""Values of a unit that is decoded as it is read: no raw value is held then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """What one unit holds.

    Parameters
    ----------
    runs
        Observed runs, rows and steps of the store.
    moments
        [S × K] moments, row by row and cut by cut inside a row.
    valid_count
        int64, observed values of each time chunk, over all rows of the unit.
    """

    runs: Runs
    moments: Moments
    valid_count: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Raw values of some steps of a unit, all its rows.

    Parameters
    ----------
    start, stop
        Steps, half-open.
    raw
        Stored values [S, stop - start], in any memory order; of a small unit until the next piece is asked for.
    lost
        Step ranges that are missing whatever the values are: absent or unreadable chunks.
    """

    start: int
    stop: int
    raw: NDArray[Any]
    lost: Sequence[tuple[int, int]] = ()


def is_small(num_rows: int, num_steps: int, most_values: int = SMALL_VALUES) -> bool:
    """Return whether a unit is decoded as it is read."""
    return num_rows * num_steps <= most_values


def scan(
    pieces: Iterable[Piece],
    unit: ScanUnit,
    *,
    chunk_starts: Sequence[int],
    stored_steps: tuple[int, int] | None = None,
    order: NDArray[np.int64] | None = None,
    block_values: int = BLOCK_VALUES,
    small_values: int = SMALL_VALUES,
) -> ScanResult:
    """Scan the raw values of a unit.

    Parameters
    ----------
    pieces
        Stored values, together all steps of the unit; asked for once, one after another.
    unit
        Where they come from and what they mean.
    chunk_starts
        First stored step of each time chunk.
    stored_steps
        Steps that the pieces hold; None: those of the unit, which are as stored.
    order
        Stored step of each step of the unit, where the time axis was mended.
    block_values, small_values
        Upper bounds for the values of one block and of a unit that is decoded as it is read; do not change the result.
    """
    (first_row, last_row), (first_step, last_step) = unit.rows, stored_steps or unit.steps
    num_rows, num_steps = last_row - first_row, last_step - first_step
    small = is_small(num_rows, num_steps, small_values)
    height = num_rows if small else min(max(1, block_values // num_steps), num_rows)
    buffer = np.empty((height, num_steps), dtype=np.float32)
    if small:
        _decode(pieces, unit, slice(0, num_rows), first_step, buffer, block_values)
        return scan_decoded(buffer, unit, chunk_starts=chunk_starts, stored_steps=stored_steps, order=order)
    held = list(pieces)

    def blocks() -> Iterator[NDArray[np.float32]]:
        for top in range(0, num_rows, height):
            rows = slice(top, min(top + height, num_rows))
            values = buffer[: rows.stop - rows.start]
            _decode(held, unit, rows, first_step, values, block_values)
            yield values

    return _scan_blocks(blocks(), unit, chunk_starts, (first_step, last_step), order)


def scan_decoded(
    values: NDArray[np.float32],
    unit: ScanUnit,
    *,
    chunk_starts: Sequence[int],
    stored_steps: tuple[int, int] | None = None,
    order: NDArray[np.int64] | None = None,
) -> ScanResult:
    """Scan the canonical values of a unit, float32 [S, T] with NaN missing; the rest as :func:`scan` takes it."""
    return _scan_blocks([values], unit, chunk_starts, stored_steps or unit.steps, order)


def _scan_blocks(
    blocks: Iterable[NDArray[np.float32]],
    unit: ScanUnit,
    chunk_starts: Sequence[int],
    stored_steps: tuple[int, int],
    order: NDArray[np.int64] | None,
) -> ScanResult:
    """Scan neighbouring rows, block by block; a block is used up before the next is asked for."""
    first_step, last_step = stored_steps
    per_stored_step = np.zeros(last_step - first_step, dtype=np.int64)
    sums = _Sums(unit)
    runs: list[Runs] = []
    top = unit.rows[0]
    for values in blocks:
        if order is not None:
            per_stored_step += (~np.isnan(values)).sum(axis=0)
        runs.append(sums.add(values if order is None else np.take(values, order, axis=1), top))
        top += values.shape[0]
    found = join(runs)
    per_step = observed_per_step(found, first_step, last_step) if order is None else per_stored_step
    valid_count = np.add.reduceat(per_step, np.asarray(chunk_starts) - first_step)
    return ScanResult(runs=found, moments=sums.moments(), valid_count=valid_count)


def _decode(
    pieces: Iterable[Piece],
    unit: ScanUnit,
    rows: slice,
    first_step: int,
    values: NDArray[np.float32],
    block_values: int,
) -> None:
    """Fill canonical values, float32 [rows, T], from the rows of pieces; a large one in turns."""
    area = np.frombuffer(unit.area, dtype="<f8")[rows] if unit.area else None
    most_steps = max(block_values // values.shape[0], 1)
    for piece in pieces:
        for begin in range(piece.start, piece.stop, most_steps):
            steps = slice(begin, min(begin + most_steps, piece.stop))
            raw = piece.raw[rows, steps.start - piece.start : steps.stop - piece.start]
            if raw.strides[1] != raw.itemsize:  # time comes first in the store
                raw = np.ascontiguousarray(raw)
            plain = float_rule(unit.rule, raw.dtype) if raw.flags.writeable else None
            if plain is not None:
                decode_rows(raw, plain, values, steps.start - first_step)
            else:
                decode(raw, unit.rule, area=area, out=values[:, steps.start - first_step : steps.stop - first_step])
        for start, stop in piece.lost:
            values[:, start - first_step : stop - first_step] = np.nan


class _Sums:
    """Sums of a unit's rows, filled block by block."""

    def __init__(self, unit: ScanUnit) -> None:
        self._unit = unit
        self._cuts = np.asarray(unit.cuts, dtype=np.int64) - unit.steps[0]
        shape = (unit.rows[1] - unit.rows[0], self._cuts.size - 1)
        self._count = np.zeros(shape, dtype=np.int64)
        self._mean, self._m2, self._low, self._high = (np.empty(shape) for _ in range(4))

    def add(self, values: NDArray[np.float32], first_row: int) -> Runs:
        """Take in canonical rows, float32 [S, T] with NaN missing, and return their runs."""
        num_rows = values.shape[0]
        rows = slice(first_row - self._unit.rows[0], first_row - self._unit.rows[0] + num_rows)
        count, mean, m2, low, high = (
            self._count[rows],
            self._mean[rows],
            self._m2[rows],
            self._low[rows],
            self._high[rows],
        )
        add_rows(values, self._cuts, count, mean, m2, low, high)
        if count.sum() == values.size:
            return whole_rows(np.arange(first_row, first_row + num_rows), *self._unit.steps)
        return find_runs(~np.isnan(values), first_row=first_row, first_step=self._unit.steps[0])

    def moments(self) -> Moments:
        """Return the moments of all rows and cuts."""
        return Moments(
            count=self._count.reshape(-1),
            mean=self._mean.reshape(-1),
            m2=self._m2.reshape(-1),
            low=self._low.reshape(-1),
            high=self._high.reshape(-1),
        )
