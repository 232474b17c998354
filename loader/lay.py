"""Scale values and lay them into rows, compiled: short loops over a stretch, without the interpreter lock.

Division is by several values at once only where what it writes is contiguous, so a stretch is decoded and scaled into
the cache first and spread over the rows from there.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headrace.compiled import compiled
from headrace.decode_floats import FloatRule, decode_row, flat_rows
from headrace.loader.placement import Lines

_TOGETHER: Final = 512
_UNRULED: Final = FloatRule(flags=np.zeros(0, np.float32), low=np.float32(-np.inf), high=np.float32(np.inf))
"""Of canonical values, where NaN is missing and nothing else."""


@compiled
def _lay(
    raw: Any, pitch: int, num_steps: int, flags: Any, low: Any, high: Any, source: Any, line: Any, first: Any,
    last: Any, row: Any, mean: Any, std: Any, missing: Any, rows: Any, column: int, mask: int,
) -> bool:  # fmt: skip
    num_rows = (raw.size - num_steps) // pitch + 1
    for n in range(line.size):
        if not (0 <= line[n] < source.size and 0 <= source[line[n]] < num_rows):
            return False
        if not (0 <= first[n] <= last[n] <= num_steps and 0 <= row[n] <= rows.shape[0] - (last[n] - first[n])):
            return False
    values, scaled = np.empty(_TOGETHER, np.float32), np.empty(_TOGETHER, np.float32)
    gone = np.empty(_TOGETHER, np.float32)
    for n in range(line.size):
        middle, spread = mean[line[n]], std[line[n]]
        for begin in range(first[n], last[n], _TOGETHER):
            count = min(_TOGETHER, last[n] - begin)
            place = source[line[n]] * pitch + begin
            decode_row(raw[place : place + count], flags, low, high, values)
            for i in range(count):
                value = (values[i] - middle) / spread
                scaled[i] = missing if value != value else value
                gone[i] = 1.0 if value != value else 0.0
            top = row[n] + begin - first[n]
            for i in range(count):
                rows[top + i, column] = scaled[i]
            if mask >= 0:
                for i in range(count):
                    rows[top + i, mask] = gone[i]
    return True


def lay(
    raw: NDArray[Any],
    rule: FloatRule | None,
    source: NDArray[np.int64],
    lines: Lines,
    mean: NDArray[np.float32],
    std: NDArray[np.float32],
    *,
    rows: NDArray[np.float32],
    column: int,
    missing: np.float32,
    mask: int | None = None,
) -> None:
    """Write ``(value - mean) / std`` into a column.

    Parameters
    ----------
    raw
        Stored values, or canonical float32 ones, [S, T]; each row contiguous.
    rule
        What stored values mean; None for canonical ones, where NaN is missing.
    source
        int64 [L], row of the values that each line is.
    lines
        Which values of which line go where.
    mean, std
        float32 [L], scaling.
    rows
        float32 [rows, V], written.
    column
        Where to.
    missing
        What stands for NaN.
    mask
        Column that gets 1 where a value is missing and 0 elsewhere.

    Raises
    ------
    IndexError
        There are not as many rows as values, no such column, or rows are not contiguous: compiled code would write
        elsewhere.
    """
    if lines.line.size == 0 or raw.size == 0:
        return
    rule = rule or _UNRULED
    place = lines.line, lines.first, lines.last, lines.row
    to = rows, column, -1 if mask is None else mask
    fits = max(to[1:]) < rows.shape[1] and min(mean.size, std.size) >= source.size and raw.strides[1] == raw.itemsize
    values = (*flat_rows(raw), raw.shape[1], rule.flags, rule.low, rule.high)
    if not fits or not _lay(*values, source, *place, mean, std, missing, *to):
        raise IndexError("the values do not fit the rows")
