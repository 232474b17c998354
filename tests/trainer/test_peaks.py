"""Peaks are those that an obvious search of the definition finds, with flat tops, equal heights and edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.trainer import peaks as peaks_module
from headrace.trainer.peaks import find_peaks, local_maxima


def slow_maxima(values):
    found = []
    for first in range(1, len(values) - 1):
        last = first
        while last + 1 < len(values) and values[last + 1] == values[first]:
            last += 1
        begins_top = values[first - 1] < values[first]
        if begins_top and last + 1 < len(values) and values[last + 1] < values[first]:
            found.append((first + last) // 2)
    return found


def slow_prominence(values, peak):
    lowest = []
    for step in (-1, 1):
        place, low = peak, values[peak]
        while 0 <= place < len(values) and values[place] <= values[peak]:
            low = min(low, values[place])
            place += step
        lowest.append(low)
    return values[peak] - max(lowest)


def slow_peaks(values, distance, prominence):
    left = sorted(slow_maxima(values), key=lambda place: (values[place], place))
    kept = []
    while left:
        kept.append(left.pop())
        left = [place for place in left if abs(place - kept[-1]) >= distance]
    return [place for place in sorted(kept) if slow_prominence(values, place) >= prominence]


@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(st.integers(0, 6), max_size=70),
    distance=st.integers(1, 25),
    prominence=st.sampled_from([0.0, 1.0, 2.5, 4.0]),
    reach=st.sampled_from([1, 2, 256]),
)
def test_peaks_equal_an_obvious_search(values, distance, prominence, reach):
    series = np.array(values, dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peaks_module, "_FIRST_REACH", reach)
        assert find_peaks(series, distance, prominence).tolist() == slow_peaks(values, distance, prominence)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([1.0], []),
        ([1.0, 2.0], []),
        ([0.0, 1.0, 0.0], [1]),
        ([0.0, 1.0, 1.0, 1.0, 1.0, 0.0], [2]),
        ([1.0, 1.0, 0.0], []),
        ([0.0, 1.0, 1.0, 2.0, 2.0], []),
        ([3.0, 0.0, 2.0, 1.0, 2.0, 0.0], [2, 4]),
    ],
)
def test_a_top_counts_once_and_edges_never(values, expected):
    assert local_maxima(np.array(values)).tolist() == expected


def test_of_two_close_peaks_the_higher_stays_and_a_dropped_one_drops_nothing():
    series = np.zeros(40)
    series[[10, 14, 18]] = [1.0, 3.0, 2.0]
    assert find_peaks(series, 5, 0.0).tolist() == [14]
    # 8 is too close to 10 and 12, but 14 drops these first.
    series[[8, 12]] = [0.5, 2.5]
    assert find_peaks(series, 5, 0.0).tolist() == [8, 14]


def test_a_shoulder_of_a_flood_is_not_prominent():
    series = np.array([0.0, 5.0, 4.0, 4.5, 0.0])
    assert find_peaks(series, 1, 0.5).tolist() == [1, 3]
    assert find_peaks(series, 1, 0.6).tolist() == [1]
