"""Hypothesis strategies for the pure parts of the loader: runs of window starts, without any store."""

import numpy as np
from hypothesis import strategies as st

from headrace.loader.windows import Windows

Run = tuple[int, int, int, int]
"""Data set, basin, first start, number of windows."""


def windows_from(runs: list[Run], stride: int) -> Windows:
    """Return runs as the loader keeps them."""
    rows = np.array(sorted(runs), dtype=np.int64).reshape(-1, 4)
    return Windows(
        dataset=rows[:, 0].astype(np.int16),
        basin=rows[:, 1].astype(np.int32),
        start=rows[:, 2].astype(np.int32),
        stop=(rows[:, 2] + (rows[:, 3] - 1) * stride + 1).astype(np.int32),
        num_windows=rows[:, 3],
        stride=stride,
    )


@st.composite
def window_runs(draw: st.DrawFn, *, max_basins: int = 6, max_windows: int = 40) -> Windows:
    """Random disjoint runs of up to two data sets, on a stride grid."""
    stride = draw(st.integers(1, 4))
    runs: list[Run] = []
    for dataset in range(draw(st.integers(1, 2))):
        for basin in draw(st.sets(st.integers(0, 20), min_size=1, max_size=max_basins)):
            start = draw(st.integers(0, 30))
            for _ in range(draw(st.integers(1, 3))):
                count = draw(st.integers(1, max_windows))
                runs.append((dataset, basin, start, count))
                start += count * stride + draw(st.integers(0, 60))
    return windows_from(runs, stride)


def listed(windows: Windows) -> list[tuple[int, int, int]]:
    """Return every window as (data set, basin, start), in order."""
    return [
        (int(d), int(b), int(s) + k * windows.stride)
        for d, b, s, n in zip(windows.dataset, windows.basin, windows.start, windows.num_windows, strict=True)
        for k in range(n)
    ]
