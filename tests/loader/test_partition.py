"""Batch cuts: equal counts on every rank, nothing twice, nothing lost (field cases H1, H2)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.loader.partition import BatchCuts, LocalCuts, SharedCuts, cut_epoch


@st.composite
def cuts(draw: st.DrawFn) -> SharedCuts:
    total, world = draw(st.integers(0, 300)), draw(st.integers(1, 9))
    return SharedCuts(
        first=draw(st.integers(0, total)), total=total, batch_size=draw(st.integers(1, 70)), world_size=world,
        drop_last=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def local_cuts(draw: st.DrawFn) -> LocalCuts:
    """Ranks whose numbers of windows differ as they do after sharing out, or by far more."""
    ranks, least = draw(st.integers(1, 6)), draw(st.integers(1, 200))
    totals = [least + draw(st.integers(0, 1 + draw(st.sampled_from([0, 3, least])))) for _ in range(ranks)]
    return LocalCuts(
        rank=draw(st.integers(0, ranks - 1)), firsts=(0,) * ranks, totals=tuple(totals),
        batch_size=draw(st.integers(1, 70)), drop_last=draw(st.booleans()),
    )  # fmt: skip


def slices(cut: BatchCuts, rank: int) -> list[tuple[int, int]]:
    return [cut.slice_of(number, rank) for number in range(len(cut))]


@given(cuts())
def test_ranks_are_disjoint_and_cover_every_window(cut: SharedCuts):
    """Field case H2: what ``len`` says is what comes, for every number of windows, batch size and number of ranks."""
    every = [slices(cut, rank) for rank in range(cut.world_size)]
    served = sorted(p for own in every for a, b in own for p in range(a, b))
    stop = cut.total if not cut.drop_last else cut.first + len(cut) * cut.global_size
    assert served == list(range(cut.first, stop))


@given(cuts())
def test_every_rank_has_as_many_batches_and_none_is_empty_unless_too_few_windows_are_left(cut: SharedCuts):
    """Field case H1."""
    sizes = [[stop - start for start, stop in slices(cut, rank)] for rank in range(cut.world_size)]
    assert {len(own) for own in sizes} == {len(cut)}
    if cut.total - cut.first >= cut.world_size:
        assert all(size > 0 for own in sizes for size in own)
    elif cut.total > cut.first and not cut.drop_last:
        assert [own for (own,) in sizes] == [1] * (cut.total - cut.first) + [0] * (
            cut.world_size - cut.total + cut.first
        )


@given(cuts())
def test_batches_have_their_size_except_the_last(cut: SharedCuts):
    for rank in range(cut.world_size):
        sizes = [stop - start for start, stop in slices(cut, rank)]
        assert sizes[:-1] == [cut.batch_size] * (len(sizes) - 1) if sizes else True
        assert not sizes or sizes[-1] <= cut.batch_size + 1
        assert not (cut.drop_last and sizes) or sizes[-1] == cut.batch_size


@given(cuts())
def test_bounds_follow_each_other_and_hold_the_slices(cut: SharedCuts):
    position = cut.first
    for number in range(len(cut)):
        start, stop = cut.bounds(number)
        parts = [cut.slice_of(number, rank) for rank in range(cut.world_size)]
        assert start == position
        assert parts[0][0] == start
        assert parts[-1][1] == stop
        assert all(a[1] == b[0] for a, b in pairwise(parts))
        assert cut.consumed_after(number) == (stop,)
        position = stop


def test_a_rest_smaller_than_the_ranks_joins_the_batch_before():
    cut = SharedCuts(first=0, total=10, batch_size=1, world_size=3)
    assert [[b - a for a, b in slices(cut, rank)] for rank in range(3)] == [[1, 1, 2], [1, 1, 1], [1, 1, 1]]


def test_ten_windows_on_three_ranks_by_two_give_equal_counts():
    """Field case H1: 10 windows, 3 ranks, batch 2."""
    cut = SharedCuts(first=0, total=10, batch_size=2, world_size=3)
    assert [[b - a for a, b in slices(cut, rank)] for rank in range(3)] == [[2, 2], [2, 1], [2, 1]]


def test_a_rest_smaller_than_the_ranks_with_nothing_before_it_leaves_some_with_an_empty_batch():
    cut = SharedCuts(first=8, total=10, batch_size=4, world_size=3)
    assert [slices(cut, rank) for rank in range(3)] == [[(8, 9)], [(9, 10)], [(10, 10)]]
    assert len(SharedCuts(first=8, total=10, batch_size=4, world_size=3, drop_last=True)) == 0
    assert len(SharedCuts(first=10, total=10, batch_size=4, world_size=3)) == 0


@given(local_cuts())
def test_ranks_with_windows_of_their_own_have_equal_counts_and_nothing_left_over(cut: LocalCuts):
    sizes = [[stop - start for start, stop in slices(cut, rank)] for rank in range(len(cut.totals))]
    assert {len(own) for own in sizes} == {len(cut)}
    if cut.drop_last:
        assert all(size == cut.batch_size for own in sizes for size in own)
        assert min(cut.totals) - len(cut) * cut.batch_size < cut.batch_size
        return
    assert [sum(own) for own in sizes] == list(cut.totals)
    assert all(0 < min(own) <= max(own) <= min(own) + 1 for own in sizes)
    if min(cut.totals) >= -(-max(cut.totals) // cut.batch_size):
        assert max(size for own in sizes for size in own) <= cut.batch_size


@given(local_cuts(), st.data())
def test_the_rest_of_an_epoch_is_cut_into_the_same_batches(cut: LocalCuts, data: st.DataObject):
    if len(cut) < 2:
        return
    done = data.draw(st.integers(1, len(cut) - 1))
    rest = cut_epoch(
        cut.consumed_after(done - 1), cut.totals, rank=cut.rank, world_size=len(cut.totals),
        batch_size=cut.batch_size, drop_last=cut.drop_last,
    ) if len(cut.totals) > 1 else LocalCuts(
        rank=cut.rank, firsts=cut.consumed_after(done - 1), totals=cut.totals, batch_size=cut.batch_size,
        drop_last=cut.drop_last,
    )  # fmt: skip
    for rank in range(len(cut.totals)):
        assert slices(rest, rank) == slices(cut, rank)[done:]
    assert rest.first == cut.slice_of(done, cut.rank)[0]


@pytest.mark.parametrize(("totals", "kind"), [((9,), SharedCuts), ((5, 4), LocalCuts)])
def test_an_epoch_is_cut_from_its_start_unless_told_otherwise(totals, kind):
    settings = {"rank": 0, "world_size": 2, "batch_size": 2, "drop_last": False}
    cut = cut_epoch(None, totals, **settings)
    assert isinstance(cut, kind)
    assert cut.first == 0
