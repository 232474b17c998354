"""Count, sum, squared deviations and extremes of rows with holes, compiled: a few passes at the speed of the cache.

NumPy needs a pass per step (hole test, fill, sum, subtract, square), each over memory twice as wide; compiled, a row
is read four times as it is. The order of a sum depends on the number of values alone, never on the block.
"""

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headrace.compiled import compiled

# Sums may be split over vector lanes; NaN keeps its meaning, because it marks the holes.
_SUMMING = {"reassoc", "contract", "nsz"}

_compiled = partial(compiled, fastmath=_SUMMING)
_SIGN: Final = np.int32(31)
_LARGEST: Final = np.int32(2**31 - 1)
_SMALLEST: Final = np.int32(-(2**31))
_ZERO: Final = np.int32(0)
_NEGATIVE_ZERO: Final = np.int32(-1)
"""Its bits run backwards from zero."""


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


# Extremes are sought among whole numbers in the order of the floats: the vector unit has a minimum of those, and of
# floats only where none is not-a-number. Bits of positive floats are in order; those of negative ones run backwards.
@_compiled
def _extremes(values: Any, bits: Any) -> Any:
    lowest, highest = _LARGEST, _SMALLEST
    for i in range(values.size):
        place = bits[i] ^ ((bits[i] >> _SIGN) & _LARGEST)
        seen = values[i] == values[i]
        lowest, highest = min(lowest, place if seen else _LARGEST), max(highest, place if seen else _SMALLEST)
    return lowest, highest


@_compiled
def _at(place: Any) -> Any:
    place = _ZERO if place == _NEGATIVE_ZERO else place  # of two zeros one, whichever came first
    return np.float64(np.int32(place ^ ((place >> _SIGN) & _LARGEST)).view(np.float32))


@_compiled
def _add(values: Any, cuts: Any, count: Any, mean: Any, m2: Any, low: Any, high: Any) -> None:
    bits = values.view(np.int32)
    for line in range(values.shape[0]):
        row, row_bits = values[line], bits[line]
        for k in range(cuts.shape[0] - 1):
            part, part_bits = row[cuts[k] : cuts[k + 1]], row_bits[cuts[k] : cuts[k + 1]]
            seen = _count(part)
            middle = _sum(part) / max(seen, 1.0)
            count[line, k], mean[line, k] = np.int64(seen), middle
            m2[line, k] = _squares(part, middle)
            least, most = _extremes(part, part_bits)
            low[line, k], high[line, k] = (_at(least), _at(most)) if seen > 0 else (np.nan, np.nan)


def add_rows(
    values: NDArray[np.float32],
    cuts: NDArray[np.int64],
    count: NDArray[np.int64],
    mean: NDArray[np.float64],
    m2: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> None:
    """Fill count, mean, sum of squared deviations and extremes of rows, cut by cut.

    Parameters
    ----------
    values
        float32 [S, T], contiguous; NaN is missing.
    cuts
        int64 [K + 1], columns that split the rows, 0 and T included.
    count, mean, m2, low, high
        [S, K], written; where no value is seen mean and m2 are 0, low and high not a number. Of two zeros it is +0.
    """
    _add(values, cuts, count, mean, m2, low, high)
