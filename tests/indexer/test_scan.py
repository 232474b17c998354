"""A unit's runs, moments and counts depend on its values alone, not on how they are cut or stored."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.indexer.scan import Piece, scan
from headrace.schemas.moments import Moments
from headrace.schemas.variables import DecodeRule
from indexing import some_unit


def unit_of(shape, *, first_row=0, first_step=0, cuts=(), rule=None, area=b""):
    rows, steps = (first_row, first_row + shape[0]), (first_step, first_step + shape[1])
    return some_unit(rows=rows, steps=steps, cuts=(steps[0], *cuts, steps[1]), rule=rule or DecodeRule(), area=area)


def scanned(raw, unit, **options):
    whole = [Piece(start=unit.steps[0], stop=unit.steps[1], raw=raw)]
    return scan(options.pop("pieces", whole), unit, chunk_starts=options.pop("starts", [unit.steps[0]]), **options)


def bytes_of(result):
    m = result.moments
    columns = (result.runs.row, result.runs.start, result.runs.stop, m.count, m.mean, m.m2, m.low, m.high)
    return [np.ascontiguousarray(c).tobytes() for c in (*columns, result.valid_count)]


@st.composite
def blocks(draw):
    shape = (draw(st.integers(1, 9)), draw(st.integers(1, 300)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.normal(rng.choice([0, 1e5]), 1.0, shape).astype(draw(st.sampled_from(["f4", "f8"])))
    values[rng.random(shape) < draw(st.sampled_from([0.0, 0.01, 0.5, 1.0]))] = np.nan
    cuts = draw(st.lists(st.integers(1, shape[1] - 1), unique=True, max_size=3)) if shape[1] > 1 else []
    return values, sorted(cuts)


@given(blocks(), st.integers(1, 3000))
def test_bytes_do_not_depend_on_block_height(block, height):
    values, cuts = block
    unit = unit_of(values.shape, first_row=5, first_step=40, cuts=[40 + c for c in cuts])
    for most in ({"block_values": height}, {"block_values": height, "small_values": 0}):
        assert bytes_of(scanned(values, unit)) == bytes_of(scanned(values, unit, **most))


@given(blocks())
def test_bytes_do_not_depend_on_memory_order(block):
    values, cuts = block
    unit = unit_of(values.shape, cuts=cuts)
    assert bytes_of(scanned(values, unit)) == bytes_of(scanned(np.asfortranarray(values), unit))
    assert bytes_of(scanned(values, unit)) == bytes_of(scanned(np.ascontiguousarray(values.T).T, unit))


@given(blocks(), st.lists(st.integers(1, 299), unique=True, max_size=5))
def test_bytes_do_not_depend_on_how_the_unit_was_read(block, edges):
    values, cuts = block
    unit = unit_of(values.shape, cuts=cuts)
    edges = [0, *sorted(e for e in edges if e < values.shape[1]), values.shape[1]]
    pieces = [Piece(start=a, stop=b, raw=values[:, a:b]) for a, b in pairwise(edges)]
    for most in (1 << 20, 0):
        assert bytes_of(scanned(values, unit)) == bytes_of(
            scanned(values, unit, pieces=iter(pieces), small_values=most)
        )


@given(blocks())
def test_moments_are_those_of_each_row_between_cuts(block):
    values, cuts = block
    found = scanned(values, unit_of(values.shape, cuts=cuts)).moments
    edges = [0, *cuts, values.shape[1]]
    for k, (a, b) in enumerate(pairwise(edges)):
        expected = Moments.of(values[:, a:b].astype(np.float32))
        of_cut = found.take(np.arange(k, len(found), len(edges) - 1))
        np.testing.assert_array_equal(of_cut.count, expected.count)
        np.testing.assert_array_equal(of_cut.mean, expected.mean)
        np.testing.assert_allclose(of_cut.m2, expected.m2, rtol=1e-12)
        np.testing.assert_array_equal(of_cut.low, expected.low)
        np.testing.assert_array_equal(of_cut.high, expected.high)


@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=30)), st.data())
def test_valid_counts_are_counted_per_time_chunk(observed, data):
    values = np.where(observed, 1.0, np.nan)
    size = data.draw(st.integers(1, observed.shape[1]))
    starts = list(range(0, observed.shape[1], size))
    found = scanned(values, unit_of(values.shape), starts=starts).valid_count
    assert found.tolist() == [observed[:, s : s + size].sum() for s in starts]


def test_lost_steps_are_missing_whatever_the_values():
    values = np.ones((2, 6), dtype="i2")
    found = scanned(values, unit_of((2, 6)), pieces=[Piece(start=0, stop=6, raw=values, lost=[(1, 3), (5, 6)])])
    spans = list(zip(found.runs.row.tolist(), found.runs.start.tolist(), found.runs.stop.tolist(), strict=True))
    assert spans == [(0, 0, 1), (0, 3, 5), (1, 0, 1), (1, 3, 5)]


def test_area_divides_each_row_by_its_own():
    area = np.array([2.0, 4.0, np.nan])
    rule = DecodeRule(area_factor=8.0, area_array="area")
    found = scanned(np.ones((3, 4)), unit_of((3, 4), rule=rule, area=area.tobytes())).moments
    assert found.mean.tolist()[:2] == [4.0, 2.0]
    assert found.count.tolist() == [4, 4, 0]


@settings(max_examples=5)
@given(st.integers(1, 40))
def test_float32_sums_do_not_drift(rows):
    """I1: a float32 mean of 2e7 values of 280 is wrong by percents; float64 is exact. I2: no E[x²] - mean²."""
    constant = scanned(np.full((1, 2_000_000), 280, "f4"), unit_of((1, 2_000_000))).moments
    assert (constant.mean[0], constant.m2[0]) == (280.0, 0.0)
    wave = 1e5 + 0.01 * np.sin(np.arange(1000.0))[None].repeat(rows, 0)
    narrow = scanned(wave, unit_of(wave.shape)).moments
    np.testing.assert_allclose(narrow.m2, ((wave.astype("f4") - wave.astype("f4").mean(dtype="f8")) ** 2).sum(1), 1e-6)
