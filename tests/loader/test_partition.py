"""Batch cuts: equal counts on every rank, nothing twice, nothing lost (field cases H1, H2)."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.loader.partition import BatchCuts
from headrace.schemas.errors import ConfigError


@st.composite
def cuts(draw: st.DrawFn) -> BatchCuts:
    total, world = draw(st.integers(0, 300)), draw(st.integers(1, 9))
    first, drop_last = draw(st.integers(0, total)), draw(st.booleans())
    assume(drop_last or first == total or total - first >= world)
    return BatchCuts(
        first=first, total=total, batch_size=draw(st.integers(1, 70)), world_size=world, drop_last=drop_last
    )


@given(cuts())
def test_ranks_are_disjoint_and_cover_every_window(cut: BatchCuts):
    slices = [list(cut.slices(rank)) for rank in range(cut.world_size)]
    served = sorted(p for own in slices for a, b in own for p in range(a, b))
    stop = cut.total if not cut.drop_last else cut.first + len(cut) * cut.global_size
    assert served == list(range(cut.first, stop))


@given(cuts())
def test_every_rank_has_as_many_batches_and_none_is_empty(cut: BatchCuts):
    slices = [list(cut.slices(rank)) for rank in range(cut.world_size)]
    assert {len(own) for own in slices} == {len(cut)}
    assert all(stop > start for own in slices for start, stop in own)


@given(cuts())
def test_batches_have_their_size_except_the_last(cut: BatchCuts):
    for rank in range(cut.world_size):
        sizes = [stop - start for start, stop in cut.slices(rank)]
        assert sizes[:-1] == [cut.batch_size] * (len(sizes) - 1) if sizes else True
        assert not sizes or sizes[-1] <= cut.batch_size + 1
        assert not (cut.drop_last and sizes) or sizes[-1] == cut.batch_size


@given(cuts())
def test_bounds_follow_each_other_and_hold_the_slices(cut: BatchCuts):
    position = cut.first
    for number in range(len(cut)):
        start, stop = cut.bounds(number)
        parts = [cut.slice_of(number, rank) for rank in range(cut.world_size)]
        assert start == position
        assert parts[0][0] == start
        assert parts[-1][1] == stop
        assert all(a[1] == b[0] for a, b in pairwise(parts))
        position = stop


def test_a_rest_smaller_than_the_ranks_joins_the_batch_before():
    cut = BatchCuts(first=0, total=10, batch_size=1, world_size=3)
    assert [[b - a for a, b in cut.slices(rank)] for rank in range(3)] == [[1, 1, 2], [1, 1, 1], [1, 1, 1]]


def test_ten_windows_on_three_ranks_by_two_give_equal_counts():
    cut = BatchCuts(first=0, total=10, batch_size=2, world_size=3)
    assert [[b - a for a, b in cut.slices(rank)] for rank in range(3)] == [[2, 2], [2, 1], [2, 1]]


def test_fewer_windows_than_ranks_are_refused():
    with pytest.raises(ConfigError, match="fewer windows than ranks"):
        BatchCuts(first=8, total=10, batch_size=4, world_size=3)
    assert len(BatchCuts(first=8, total=10, batch_size=4, world_size=3, drop_last=True)) == 0
    assert len(BatchCuts(first=10, total=10, batch_size=4, world_size=3)) == 0
