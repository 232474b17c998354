"""Scale decoded values and lay them into rows, compiled: two short loops a line, without the interpreter lock.

Division is by several values at once only where what it writes is contiguous, so a stretch is scaled into the cache
first and spread over the rows from there.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headrace.compiled import compiled
from headrace.loader.placement import Lines

_TOGETHER: Final = 512


@compiled
def _lay(
    block: Any,
    line: Any,
    first: Any,
    last: Any,
    row: Any,
    mean: Any,
    std: Any,
    missing: Any,
    rows: Any,
    column: int,
    mask: int,
) -> bool:
    for n in range(line.size):
        if not (0 <= line[n] < block.shape[0] and 0 <= first[n] <= last[n] <= block.shape[1]):
            return False
        if not 0 <= row[n] <= rows.shape[0] - (last[n] - first[n]):
            return False
    scaled, gone = np.empty(_TOGETHER, np.float32), np.empty(_TOGETHER, np.float32)
    for n in range(line.size):
        middle, spread = mean[line[n]], std[line[n]]
        for begin in range(first[n], last[n], _TOGETHER):
            end = min(begin + _TOGETHER, last[n])
            values = block[line[n], begin:end]
            for i in range(end - begin):
                value = (values[i] - middle) / spread
                scaled[i] = missing if value != value else value
                gone[i] = 1.0 if value != value else 0.0
            top = row[n] + begin - first[n]
            for i in range(end - begin):
                rows[top + i, column] = scaled[i]
            if mask >= 0:
                for i in range(end - begin):
                    rows[top + i, mask] = gone[i]
    return True


def lay(
    block: NDArray[np.float32],
    lines: Lines,
    mean: NDArray[np.float32],
    std: NDArray[np.float32],
    rows: NDArray[np.float32],
    *,
    column: int,
    missing: np.float32,
    mask: int | None = None,
) -> None:
    """Write ``(values - mean) / std`` into a column.

    Parameters
    ----------
    block
        float32 [S, T], NaN is missing.
    lines
        Which of its values go where.
    mean, std
        float32 [S], scaling.
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
        There are not as many rows as values, or no such column: compiled code would write elsewhere.
    """
    where = lines.line, lines.first, lines.last, lines.row
    inside = max(column, -1 if mask is None else mask) < rows.shape[1]
    if not inside or not _lay(block, *where, mean, std, missing, rows, column, -1 if mask is None else mask):
        raise IndexError("the values do not fit the rows")
