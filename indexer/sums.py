"""Count, sum and squared deviations of rows with holes, compiled: a few passes at the speed of the cache.

NumPy needs a pass per step (hole test, fill, sum, subtract, square), each over memory twice as wide; compiled, a row
is read three times as it is. The order of a sum depends on the number of values alone, never on the block.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.compiled import compiled

# Sums may be split over vector lanes; NaN keeps its meaning, because it marks the holes.
_SUMMING = {"reassoc", "contract", "nsz"}

_compiled = partial(compiled, fastmath=_SUMMING)


# One loop per sum: with two of them in a loop the compiler no longer uses the vector unit.
@_compiled
def _count(values: Any) -> Any:
    count = 0.0
    for i in range(values.size):
        value = values[i]
        count += 1.0 if value == value else 0.0  # false for NaN alone
    return count


@_compiled
def _sum(values: Any) -> Any:
    total = 0.0
    for i in range(values.size):
        value = values[i]
        total += np.float64(value) if value == value else 0.0
    return total


@_compiled
def _squares(values: Any, mean: float) -> Any:
    total = 0.0
    for i in range(values.size):
        value = values[i]
        deviation = np.float64(value) - mean if value == value else 0.0
        total += deviation * deviation
    return total


@_compiled
def _add(values: Any, cuts: Any, count: Any, mean: Any, m2: Any) -> None:
    for line in range(values.shape[0]):
        row = values[line]
        for k in range(cuts.shape[0] - 1):
            part = row[cuts[k] : cuts[k + 1]]
            seen = _count(part)
            middle = _sum(part) / max(seen, 1.0)
            count[line, k], mean[line, k] = np.int64(seen), middle
            m2[line, k] = _squares(part, middle)


def add_rows(
    values: NDArray[np.float32],
    cuts: NDArray[np.int64],
    count: NDArray[np.int64],
    mean: NDArray[np.float64],
    m2: NDArray[np.float64],
) -> None:
    """Fill count, mean and sum of squared deviations of rows, cut by cut.

    Parameters
    ----------
    values
        float32 [S, T], contiguous; NaN is missing.
    cuts
        int64 [K + 1], columns that split the rows, 0 and T included.
    count, mean, m2
        [S, K], written; mean and m2 are 0 where no value is seen.
    """
    _add(values, cuts, count, mean, m2)
