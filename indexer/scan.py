"""One unit's raw values to runs, moments and counts: pure, no I/O.

Rows are decoded a few at a time, so that a block stays in the CPU cache through all passes. A row's sums run over its
own values in time order, whatever the height of the block and the order of the dimensions in the store.
Legend: S rows, T steps, K cuts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.decode import decode
from headrace.indexer.runs import Runs, find_runs, join, observed_per_row, observed_per_step, whole_rows
from headrace.indexer.units import ScanUnit
from headrace.schemas.moments import Moments

BLOCK_VALUES = 1 << 15
"""Values decoded at once: with float64 temporaries about half a megabyte."""


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


def scan(
    raw: NDArray[Any],
    unit: ScanUnit,
    *,
    chunk_steps: Sequence[int],
    lost: Sequence[tuple[int, int]],
    block_values: int = BLOCK_VALUES,
) -> ScanResult:
    """Scan the raw values of a unit.

    Parameters
    ----------
    raw
        Stored values [S, T], in any memory order.
    unit
        Where they come from and what they mean.
    chunk_steps
        First step of each time chunk, then the unit's last step exclusive.
    lost
        Step ranges that are missing whatever ``raw`` holds: absent or unreadable chunks.
    block_values
        Upper bound for the values of one block; does not change the result.
    """
    num_rows, num_steps = raw.shape
    first_row, first_step = unit.rows[0], unit.steps[0]
    area = np.frombuffer(unit.area, dtype="<f8") if unit.area else None
    cuts = [(a - first_step, b - first_step) for a, b in pairwise(unit.cuts)]
    sums = _Sums(num_rows, cuts)
    runs: list[Runs] = []
    height = max(1, block_values // max(num_steps, 1))
    for top in range(0, num_rows, height):
        rows = slice(top, min(top + height, num_rows))
        block = np.ascontiguousarray(raw[rows])
        values = decode(block, unit.rule, area=None if area is None else area[rows])
        for start, stop in lost:
            values[:, start - first_step : stop - first_step] = np.nan
        runs.append(sums.add(values, rows.start, first_row, first_step))
    found = join(runs)
    per_step = observed_per_step(found, first_step, unit.steps[1])
    valid_count = np.add.reduceat(per_step, np.asarray(chunk_steps[:-1]) - first_step)
    return ScanResult(runs=found, moments=sums.moments(), valid_count=valid_count)


class _Sums:
    """Sums of a unit's rows, filled block by block."""

    def __init__(self, num_rows: int, cuts: Sequence[tuple[int, int]]) -> None:
        shape = (num_rows, len(cuts))
        self.cuts = cuts
        self.count = np.zeros(shape, dtype=np.int64)
        self.mean, self.m2 = np.zeros(shape), np.zeros(shape)
        self.low, self.high = np.full(shape, np.nan), np.full(shape, np.nan)

    def add(self, values: NDArray[np.float32], top: int, first_row: int, first_step: int) -> Runs:
        """Take in canonical rows, float32 [S, T] with NaN missing, and return their runs."""
        num_rows, num_steps = values.shape
        rows = slice(top, top + num_rows)
        wide = values.astype(np.float64)
        # No value is infinite, so a sum is NaN exactly where a value is missing.
        holey = np.isnan(wide.sum(axis=1))
        if not holey.any():
            runs = whole_rows(np.arange(top, top + num_rows) + first_row, first_step, first_step + num_steps)
            missing = None
        else:
            missing = np.isnan(values)
            runs = find_runs(~missing, first_row=top + first_row, first_step=first_step)
            np.copyto(wide, 0.0, where=missing)
        for k, (start, stop) in enumerate(self.cuts):
            part = wide[:, start:stop]
            count = observed_per_row(
                runs, first_step + start, first_step + stop, first_row=top + first_row, num_rows=num_rows
            )
            mean = part.sum(axis=1) / np.maximum(count, 1)
            part -= mean[:, None]
            if missing is not None:
                np.copyto(part, 0.0, where=missing[:, start:stop])
            np.multiply(part, part, out=part)
            self.count[rows, k], self.mean[rows, k], self.m2[rows, k] = count, mean, part.sum(axis=1)
            self.low[rows, k] = np.fmin.reduce(values[:, start:stop], axis=1)
            self.high[rows, k] = np.fmax.reduce(values[:, start:stop], axis=1)
        return runs

    def moments(self) -> Moments:
        """Return the moments of all rows and cuts."""
        return Moments(
            count=self.count.reshape(-1),
            mean=self.mean.reshape(-1),
            m2=self.m2.reshape(-1),
            low=self.low.reshape(-1),
            high=self.high.reshape(-1),
        )
