"""Whether the windows of a split have anything to be compared with: told by the tables, before a chunk is read."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headrace.loader.catalog import Index
from headrace.loader.windows import Windows, observed_runs
from headrace.schemas.intervals import Intervals
from headrace.schemas.windows import WindowSpec, allowed_by_target


def any_target_observed(
    index: Index, dataset_ids: Sequence[str], targets: Sequence[str], windows: Windows, window: WindowSpec
) -> bool:
    """Return whether some target step of some window is observed.

    Parameters
    ----------
    index
        With the observed runs of the targets.
    dataset_ids
        Data sets by their number in ``windows``.
    targets
        Names; a data set may lack some.
    windows
        Runs of starts.
    window
        Their shape.
    """
    for number, dataset_id in enumerate(dataset_ids):
        own = np.flatnonzero(windows.dataset == number)
        for target in targets:
            seen = allowed_by_target([observed_runs(index, dataset_id, target)], window, "drop_all_nan")
            assert seen is not None, "the policy does not keep all"
            if _some_start_in(windows, own, seen):
                return True
    return False


def _some_start_in(windows: Windows, own: NDArray[np.int64], seen: Intervals) -> bool:
    """Return whether a start of the chosen runs lies in intervals of the same basin."""
    row, start, stop = (values[own].astype(np.int64) for values in (windows.basin, windows.start, windows.stop))
    low = int(min(start.min(initial=0), seen.start.min(initial=0)))
    base = int(max(stop.max(initial=0), seen.stop.max(initial=0))) - low + 1
    first = np.searchsorted(seen.row * base + seen.stop - low, row * base + start - low, side="right")
    behind = np.searchsorted(seen.row * base + seen.start - low, row * base + stop - low, side="left")
    number = np.maximum(behind - first, 0)
    run = np.repeat(np.arange(row.size), number)
    met = np.arange(run.size) + np.repeat(first - np.cumsum(number) + number, number)
    begin = np.maximum(start[run], seen.start[met])
    begin += (start[run] - begin) % windows.stride  # starts are counted from where their run begins
    return bool((begin < np.minimum(stop[run], seen.stop[met])).any())
