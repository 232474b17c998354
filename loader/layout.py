"""Where the rows of every basin lie when a split is decoded: one slot per basin, one row per step.

A slot covers the steps that the basin's windows need and nothing else, so a short record costs little. The layout
depends on the windows alone, never on the memory budget.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Slots in the order (data set, basin), struct of arrays.

    Parameters
    ----------
    dataset
        int16 [S], position among the loader's data sets.
    basin
        int32 [S], basin number.
    first, last
        int64 [S], steps [first, last) that the slot holds.
    base
        int64 [S + 1], row of ``first``; the last entry is the number of rows.
    run_slot
        int64 [R], slot of each run of windows.
    """

    dataset: NDArray[np.int16]
    basin: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    base: NDArray[np.int64]
    run_slot: NDArray[np.int64]

    @property
    def num_slots(self) -> int:
        """S, the number of basins with at least one window."""
        return int(self.dataset.size)

    @property
    def num_rows(self) -> int:
        """Rows of all slots together."""
        return int(self.base[-1])


def lay_out(windows: Windows, length: int) -> Layout:
    """Give every basin with windows its rows.

    Parameters
    ----------
    windows
        Runs sorted by (data set, basin, start).
    length
        L, input steps of a window.
    """
    key = windows.dataset.astype(np.int64) << 32 | windows.basin.astype(np.int64)
    new = np.append(True, key[1:] != key[:-1]) if key.size else np.zeros(0, dtype=bool)
    head = np.flatnonzero(new)
    tail = np.append(head[1:], key.size) - 1 if key.size else head
    final = windows.start.astype(np.int64) + (windows.num_windows - 1) * windows.stride
    first, last = windows.start[head].astype(np.int64), final[tail] + length
    return Layout(
        dataset=windows.dataset[head],
        basin=windows.basin[head],
        first=first,
        last=last,
        base=np.append(0, np.cumsum(last - first)),
        run_slot=np.cumsum(new) - 1,
    )
