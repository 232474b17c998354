"""Peaks of a series: local maxima that stand apart from each other and rise clearly above what surrounds them.

The three steps are those of ``scipy.signal.find_peaks`` with ``distance`` and ``prominence``, in its order, so that
scores built on peaks can be compared with published ones without a dependency on SciPy.
"""

import numpy as np
from numpy.typing import NDArray

_FIRST_REACH = 256


def find_peaks(values: NDArray[np.float64], distance: int, prominence: float) -> NDArray[np.int64]:
    """Return the positions of the peaks of a series.

    Parameters
    ----------
    values
        float64 [N], without NaN.
    distance
        Least number of steps between two peaks, at least 1; of two that lie closer the higher one stays.
    prominence
        Least rise, in the values' units, over the higher of the two lowest points that lie between the peak and a
        higher value (or the series' end) on either side.

    Returns
    -------
    numpy.ndarray
        int64 [M], ascending. The first and the last value are never peaks; a flat top counts once, at its middle.
    """
    positions = local_maxima(values)
    positions = positions[_apart(positions, values[positions], distance)]
    return positions[[_prominence(values, position) >= prominence for position in positions.tolist()]]


def local_maxima(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return int64 [M], where a value, or a stretch of equal ones, is higher than its neighbours on both sides."""
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True)) if len(values) else np.empty(0, np.int64)
    first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
    heights = values[last]
    higher = np.flatnonzero((heights[1:-1] > heights[:-2]) & (heights[1:-1] > heights[2:])) + 1
    middle: NDArray[np.int64] = (first[higher] + last[higher]) // 2
    return middle


def _apart(positions: NDArray[np.int64], heights: NDArray[np.float64], distance: int) -> NDArray[np.bool_]:
    """Return which peaks stay when each, from the highest down, drops those closer than ``distance``.

    Of equally high ones the later goes first.
    """
    left = np.searchsorted(positions, positions - distance, side="right").tolist()
    right = np.searchsorted(positions, positions + distance, side="left").tolist()
    stays = np.ones(len(positions), dtype=bool)
    for peak in np.argsort(heights, kind="stable")[::-1].tolist():
        if stays[peak]:
            # None that is higher is within reach: it would have dropped this one.
            stays[left[peak] : right[peak]] = False
            stays[peak] = True
    return stays


def _prominence(values: NDArray[np.float64], position: int) -> float:
    """Return how far a peak rises above the higher of the lowest points on its two sides."""
    height = float(values[position])
    sides = (values[position::-1], values[position:])
    return height - max(_lowest_before_higher(side, height) for side in sides)


def _lowest_before_higher(values: NDArray[np.float64], height: float) -> float:
    """Return the lowest value before the first one above ``height``.

    Looks in ever longer stretches, because most peaks have a higher one near by.
    """
    lowest, start, reach = height, 0, _FIRST_REACH
    while start < len(values):
        stretch = values[start : start + reach]
        above = stretch > height
        if above.any():
            return min(lowest, float(stretch[: int(above.argmax())].min(initial=height)))
        lowest = min(lowest, float(stretch.min()))
        start, reach = start + reach, 2 * reach
    return lowest
