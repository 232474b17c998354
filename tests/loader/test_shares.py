"""Windows shared out among ranks: every one once, nearly equal numbers, few chunks read by two ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.loader.layout import lay_out
from headrace.loader.shares import share_windows
from headrace.loader.windows import Windows


def windows_from(runs: list[tuple[int, int, int, int]], stride: int = 1) -> Windows:
    """Make runs of (data set, basin, start, windows)."""
    dataset, basin, start, count = (np.array(column) for column in zip(*runs, strict=True))
    return Windows(
        dataset=dataset.astype(np.int16),
        basin=basin.astype(np.int32),
        start=start.astype(np.int32),
        stop=(start + (count - 1) * stride + 1).astype(np.int32),
        num_windows=count.astype(np.int64),
        stride=stride,
    )


def listed(windows: Windows) -> list[tuple[int, int, int]]:
    runs = zip(windows.dataset, windows.basin, windows.start, windows.stop, windows.num_windows, strict=True)
    found = []
    for dataset, basin, start, stop, count in runs:
        starts = range(int(start), int(stop), windows.stride)
        assert len(starts) == count > 0
        found += [(int(dataset), int(basin), s) for s in starts]
    return found


@st.composite
def some_windows(draw: st.DrawFn) -> Windows:
    stride = draw(st.integers(1, 3))
    runs = []
    for dataset in range(draw(st.integers(1, 3))):
        for basin in range(draw(st.integers(1, 6))):
            start = 0
            for _ in range(draw(st.integers(1, 3))):
                count = draw(st.integers(1, 40))
                runs.append((dataset, basin, start, count))
                start += count * stride + draw(st.integers(1, 5))
    return windows_from(runs, stride)


@given(some_windows(), st.integers(1, 5), st.integers(1, 4))
def test_every_window_lies_in_one_share_and_shares_are_nearly_equal(windows, ranks, basins_per_chunk):
    layout = lay_out(windows, 1)
    column = layout.dataset.astype(np.int64) << 32 | layout.basin // basins_per_chunk
    shares = share_windows(windows, layout.run_slot, column, ranks)
    assert sorted(w for share in shares for w in listed(share)) == sorted(listed(windows))
    assert all(listed(share) == sorted(listed(share)) for share in shares)
    loads = [share.total for share in shares]
    assert max(abs(load - windows.total / ranks) for load in loads) <= 2 + 2 * (windows.total // ranks) / 100
    if windows.total >= ranks:
        assert min(loads) > 0


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_rank_has_its_part_of_every_data_set(ranks):
    windows = windows_from([(d, b, 0, 100) for d in range(3) for b in range(12)])
    layout = lay_out(windows, 5)
    shares = share_windows(windows, layout.run_slot, layout.dataset.astype(np.int64) << 32 | layout.basin, ranks)
    for share in shares:
        assert [int(share.num_windows[share.dataset == d].sum()) for d in range(3)] == [1200 // ranks] * 3
        assert np.unique(share.basin).size == 12 // ranks  # no basin is cut where none needs to be


def test_a_cut_falls_between_two_chunks_where_that_costs_little():
    """Basins of unequal records: equal numbers would cut the 50th basin, one window from the edge of a chunk."""
    counts = [1000] * 49 + [999] + [1000] * 50
    windows = windows_from([(0, b, 0, count) for b, count in enumerate(counts)])
    layout = lay_out(windows, 5)
    first, second = share_windows(windows, layout.run_slot, layout.basin.astype(np.int64) // 10, 2)
    assert sorted(set(first.basin.tolist())) == list(range(50))
    assert sorted(set(second.basin.tolist())) == list(range(50, 100))


def test_one_long_record_is_cut_in_time():
    windows = windows_from([(0, 0, 7, 10)], stride=2)
    shares = share_windows(windows, np.zeros(1, np.int64), np.zeros(1, np.int64), 3)
    assert [listed(share) for share in shares] == [
        [(0, 0, 7), (0, 0, 9), (0, 0, 11)],
        [(0, 0, 13), (0, 0, 15), (0, 0, 17)],
        [(0, 0, 19), (0, 0, 21), (0, 0, 23), (0, 0, 25)],
    ]
