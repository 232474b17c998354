"""Moments against exact two-pass sums."""

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from headrace.schemas.moments import Moments, concatenate

FIELDS = ("count", "mean", "m2", "low", "high")
values = st.floats(-1e6, 1e6, width=32) | st.just(math.nan)
rows = hnp.arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(0, 40)), elements=values)


def exact(row: NDArray[np.floating]) -> tuple[int, float, float, float, float]:
    """Return count, mean, m2, low and high of the observed values by exactly rounded sums."""
    seen = [float(v) for v in row if not math.isnan(v)]
    if not seen:
        return 0, 0.0, 0.0, math.nan, math.nan
    mean = math.fsum(seen) / len(seen)
    return len(seen), mean, math.fsum((v - mean) ** 2 for v in seen), min(seen), max(seen)


def assert_close(moments: Moments, expected: list[tuple[int, float, float, float, float]], rtol: float = 1e-12) -> None:
    for name, column in zip(FIELDS, zip(*expected, strict=True), strict=True):
        # Near cancellation the error is relative to the size of the values, not of the result.
        size = max((abs(v) for row in expected for v in row[3:] if not math.isnan(v)), default=0.0)
        scale = {"mean": size, "m2": size * size * max(row[0] for row in expected)}.get(name, 0.0)
        np.testing.assert_allclose(getattr(moments, name), column, rtol=rtol, atol=1e-15 * scale, err_msg=name)


def assert_same_bits(first: Moments, second: Moments) -> None:
    for name in FIELDS:
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name


@given(rows)
def test_of_equals_exact_two_pass_sums(block: NDArray[np.float32]) -> None:
    moments = Moments.of(block)
    assert len(moments) == len(block)
    if len(block):
        assert_close(moments, [exact(row) for row in block])


@given(rows, st.lists(st.integers(0, 40), max_size=4))
def test_merging_pieces_equals_the_whole(block: NDArray[np.float32], cuts: list[int]) -> None:
    pieces = [Moments.of(piece) for piece in np.split(block, sorted(min(c, block.shape[1]) for c in cuts), axis=1)]
    if len(block):
        assert_close(reduce(Moments.merge, pieces), [exact(row) for row in block])


@given(rows, st.integers(0, 40), st.integers(0, 40))
def test_merge_is_associative_to_1e_12(block: NDArray[np.float32], first: int, second: int) -> None:
    a, b, c = (Moments.of(piece) for piece in np.split(block, sorted((first, second)), axis=1))
    left, right = a.merge(b).merge(c), a.merge(b.merge(c))
    if len(block):
        rows_ = zip(*(getattr(right, name).tolist() for name in FIELDS), strict=True)
        assert_close(left, list(rows_))


@given(rows)
def test_merge_with_an_empty_side_keeps_the_other_sides_bits(block: NDArray[np.float32]) -> None:
    moments, none = Moments.of(block), Moments.empty(len(block))
    assert_same_bits(moments.merge(none), moments)
    assert_same_bits(none.merge(moments), moments)


@given(rows, st.data())
def test_fold_merges_each_group_left_to_right(block: NDArray[np.float32], data: st.DataObject) -> None:
    moments = Moments.of(block)
    group = np.array(sorted(data.draw(st.integers(0, 6)) for _ in block), dtype=np.int64)
    folded = moments.fold(group, 8)
    for number in range(8):
        mine = [moments.take(np.array([i])) for i in np.flatnonzero(group == number)]
        assert_same_bits(folded.take(np.array([number])), reduce(Moments.merge, mine, Moments.empty(1)))


@pytest.mark.parametrize("num_groups", [1, 3, 500])
def test_fold_gives_the_same_bits_for_few_long_and_for_many_short_groups(num_groups: int) -> None:
    rng = np.random.default_rng(num_groups)
    block = np.where(rng.random((1500, 9)) < 0.6, np.nan, rng.normal(5, 3, (1500, 9)))
    block[rng.random(1500) < 0.2] = np.nan
    moments, group = Moments.of(block), np.sort(rng.integers(0, num_groups, 1500))
    folded = moments.fold(group, num_groups)
    for number in range(num_groups):
        mine = [moments.take(np.array([i])) for i in np.flatnonzero(group == number)]
        assert_same_bits(folded.take(np.array([number])), reduce(Moments.merge, mine, Moments.empty(1)))


@pytest.mark.parametrize("seed", range(20))
def test_folding_pairs_gives_the_bits_of_merge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    block = np.where(rng.random((20, 7)) < 0.4, np.nan, rng.normal(100, 3, (20, 7)))
    moments, pair = Moments.of(block), np.arange(20) // 2
    even, odd = np.arange(0, 20, 2), np.arange(1, 20, 2)
    assert_same_bits(moments.fold(pair, 10), moments.take(even).merge(moments.take(odd)))


@given(rows)
def test_a_rows_bits_depend_neither_on_its_neighbours_nor_on_memory_order(block: NDArray[np.float32]) -> None:
    together = Moments.of(block)
    assert_same_bits(Moments.of(np.asfortranarray(block)), together)
    assert_same_bits(concatenate([Moments.of(row[None]) for row in block]), together)


def test_long_rows_keep_their_bits_in_any_block_and_memory_order() -> None:
    block = np.random.default_rng(0).gamma(0.5, 3.0, (40, 9_001)).astype(np.float32)
    together = Moments.of(block)
    assert_same_bits(Moments.of(np.asfortranarray(block)), together)
    assert_same_bits(concatenate([Moments.of(block[i : i + 7]) for i in range(0, 40, 7)]), together)
    assert_close(together, [exact(row) for row in block], rtol=1e-13)


def test_mean_of_many_equal_float32_values_is_that_value() -> None:
    """A float32 sum of these gives 302.9."""
    moments = Moments.of(np.full((2, 2_000_000), 280.0, dtype=np.float32))
    assert moments.mean.tolist() == [280.0, 280.0]
    assert moments.std.tolist() == [0.0, 0.0]


def test_small_deviations_on_a_large_mean_survive_merging_in_pieces() -> None:
    """E[x²] - mean² is half a percent off here."""
    block = 1e5 + np.where(np.arange(1_000_000) % 2, 0.01, -0.01)[None]
    expected = float(np.std(block.astype(np.longdouble)))
    pieces = concatenate([Moments.of(piece) for piece in np.split(block, 1000, axis=1)])
    merged = pieces.fold(np.zeros(1000, dtype=np.int64), 1)
    assert merged.mean[0] == pytest.approx(1e5, rel=1e-15)
    assert merged.std[0] == pytest.approx(expected, rel=1e-9)


def test_std_is_the_population_one_and_nan_without_values() -> None:
    std = Moments.of(np.array([[1.0, 3.0], [math.nan, math.nan]])).std
    assert std[0] == 1.0
    assert math.isnan(std[1])


def test_joining_no_parts_gives_no_groups() -> None:
    assert len(concatenate([])) == 0
    assert len(Moments.empty(0).fold(np.zeros(0, np.int64), 3)) == 3
