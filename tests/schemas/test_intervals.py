"""Interval algebra against plain sets of steps."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.intervals import Intervals

Cells = set[tuple[int, int]]


def intervals_of(cells: Cells) -> Intervals:
    """Return the maximal intervals of a set of (row, step), sorted."""
    starts = sorted(c for c in cells if (c[0], c[1] - 1) not in cells)
    stops = sorted((row, step + 1) for row, step in cells if (row, step + 1) not in cells)
    columns = ([row for row, _ in starts], [step for _, step in starts], [step for _, step in stops])
    row, start, stop = (np.array(column, dtype=np.int64) for column in columns)
    return Intervals(row=row, start=start, stop=stop)


def cells_of(intervals: Intervals) -> list[tuple[int, int]]:
    rows = zip(intervals.row.tolist(), intervals.start.tolist(), intervals.stop.tolist(), strict=True)
    return [(row, step) for row, start, stop in rows for step in range(start, stop)]


def assert_normal(intervals: Intervals) -> None:
    """Check that the intervals are the only sorted, maximal way to write their cells."""
    expected = intervals_of(set(cells_of(intervals)))
    for name in ("row", "start", "stop"):
        np.testing.assert_array_equal(getattr(intervals, name), getattr(expected, name))
        assert getattr(intervals, name).dtype == np.int64


cells = st.sets(st.tuples(st.integers(0, 3), st.integers(-8, 12)), max_size=40)


@given(st.lists(cells, min_size=1, max_size=4), st.integers(1, 4))
def test_overlay_keeps_the_steps_that_enough_sets_cover(sets: list[Cells], at_least: int) -> None:
    result = Intervals.overlay([intervals_of(s) for s in sets], at_least=at_least)
    counts = Counter(cell for s in sets for cell in s)
    assert set(cells_of(result)) == {cell for cell, number in counts.items() if number >= at_least}
    assert_normal(result)


@given(cells, st.integers(-9, 9), st.integers(-9, 9))
def test_shifted_moves_both_ends_and_stays_normal(steps: Cells, start_by: int, stop_by: int) -> None:
    before = intervals_of(steps)
    after = before.shifted(start_by, stop_by)
    rows = zip(before.row.tolist(), before.start.tolist(), before.stop.tolist(), strict=True)
    expected = {(row, step) for row, a, b in rows for step in range(a + start_by, b + stop_by)}
    assert set(cells_of(after)) == expected
    assert_normal(after)


@given(st.lists(st.integers(0, 9), unique=True), st.integers(-5, 5), st.integers(-5, 5))
def test_same_for_gives_each_row_the_interval_or_none_where_it_is_empty(rows: list[int], start: int, stop: int) -> None:
    result = Intervals.same_for(np.array(rows, dtype=np.int32), start, stop)
    assert cells_of(result) == [(row, step) for row in rows for step in range(start, stop)]


def test_overlay_of_empty_sets_is_empty() -> None:
    assert Intervals.overlay([intervals_of(set())] * 2, at_least=1).row.size == 0
