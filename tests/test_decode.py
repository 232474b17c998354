"""Raw values to canonical ones, against a slow oracle in Python floats and against xarray."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from headrace.decode import decode
from headrace.schemas.variables import DecodeRule
from synthetic import write_store

DTYPES = ("<f4", "<f8", ">f4", ">f8", "<i2", ">i2", "<i4", ">i4", "i1", "u1", "<i8")
FLAGS = (
    -999.0,
    -999.99,
    -1.0,
    0.0,
    255.0,
    -32768.0,
    0.1,
    0.5,
    9.969209968386869e36,
    -1.7976931348623157e308,
    1e40,
    math.nan,
    math.inf,
)
BOUNDS = (-1e39, -5.0, -0.1, 0.0, 0.1, 0.5, 3.0, 100.0, 1e39)


def oracle(raw: Any, dtype: np.dtype[Any], rule: DecodeRule, area: float | None) -> float:
    """Decode one value step by step, in the order of DESIGN section 2; NaN is missing."""
    value = float(raw)
    floating = dtype.kind == "f"
    if not math.isfinite(value):
        return math.nan
    with np.errstate(over="ignore"):
        flags = [float(dtype.type(f)) if floating else f for f in rule.missing_values]  # compared in the raw type
    if value in flags:
        return math.nan
    value = value * rule.cf_scale + rule.cf_offset
    value = value * rule.scale + rule.offset
    if rule.area_factor is not None:
        assert area is not None
        value = value * (rule.area_factor / area) if area else math.nan
    untouched = (rule.cf_scale, rule.cf_offset, rule.scale, rule.offset, rule.area_factor) == (1, 0, 1, 0, None)
    with np.errstate(over="ignore"):
        # An unscaled float32 is compared as float32: a stored 0.1 lies within a bound of 0.1.
        narrow = untouched and dtype.str[1:] == "f4"
        low, high = (b if b is None or not narrow else float(np.float32(b)) for b in (rule.valid_min, rule.valid_max))
        if (low is not None and value < low) or (high is not None and value > high):
            return math.nan
        last = float(np.float32(value))
    return last if math.isfinite(last) else math.nan


def range_of(dtype: np.dtype[Any]) -> range:
    """Return the numbers of an integer type."""
    bits = 8 * dtype.itemsize
    return range(2**bits) if dtype.kind == "u" else range(-(2 ** (bits - 1)), 2 ** (bits - 1))


@st.composite
def cases(draw: st.DrawFn) -> tuple[NDArray[Any], DecodeRule, NDArray[np.float64]]:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.tuples(st.integers(1, 3), st.integers(0, 6)))
    special = [
        f for f in FLAGS if dtype.kind == "f" or (abs(f) < 2**63 and f.is_integer() and int(f) in range_of(dtype))
    ]
    with np.errstate(over="ignore"):
        common = st.sampled_from([dtype.type(f) for f in (*special, 3.0, 100.0)])
    raw = draw(hnp.arrays(dtype, shape, elements=common | hnp.from_dtype(dtype)))
    factors, shifts = st.sampled_from([1.0, 0.1, -2.0, 0.01, 1e300]), st.sampled_from([0.0, 273.15, -5.0])
    bounds = st.none() | st.sampled_from(BOUNDS)
    rule = DecodeRule(
        missing_values=tuple(draw(st.lists(st.sampled_from(FLAGS), max_size=3))),
        cf_scale=draw(factors),
        cf_offset=draw(shifts),
        scale=draw(factors),
        offset=draw(shifts),
        area_factor=draw(st.none() | st.sampled_from([86.4, 0.0864])),
        valid_min=draw(bounds),
        valid_max=draw(bounds),
    )
    area = draw(hnp.arrays(np.float64, shape[0], elements=st.sampled_from([1.0, 0.25, 12.3, 0.0, math.nan])))
    return raw, rule, area


PLAIN = DecodeRule()


@settings(max_examples=400)
@given(cases())
@example((np.array([[1e300, -1.7976931348623157e308]]), DecodeRule(scale=1e300), np.ones(1)))
@example((np.array([[-999.99, 0.1]], "f4"), DecodeRule(missing_values=(-999.99, 0.1)), np.ones(1)))
@example((np.array([[0.1]], "f4"), DecodeRule(valid_max=0.1, valid_min=-1e39), np.ones(1)))
def test_every_value_equals_the_slow_oracle(case: tuple[NDArray[Any], DecodeRule, NDArray[np.float64]]) -> None:
    raw, rule, area = case
    before = raw.copy()
    found = decode(raw, rule, area=area)
    expected = [[oracle(v, raw.dtype, rule, float(a)) for v in row] for row, a in zip(raw, area, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, np.float32).reshape(raw.shape))
    assert found.dtype == np.float32
    assert found.dtype.isnative
    np.testing.assert_array_equal(raw, before)


@given(cases())
def test_result_is_a_new_array_and_independent_of_memory_order(
    case: tuple[NDArray[Any], DecodeRule, NDArray[np.float64]],
) -> None:
    raw, rule, area = case
    found = decode(raw, rule, area=area)
    assert not np.shares_memory(found, raw)
    assert found.flags.writeable
    np.testing.assert_array_equal(decode(np.asfortranarray(raw), rule, area=area), found)


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        (np.array([[-1.7976931348623157e308]]), DecodeRule(missing_values=(-1.7976931348623157e308,), scale=86.4)),
        (np.array([[1.7e308]]), DecodeRule(area_factor=86.4)),
        (np.array([[1.0]], np.float32), DecodeRule(valid_max=1e39)),
    ],
)
def test_overflow_on_the_way_makes_no_noise(raw: NDArray[Any], rule: DecodeRule) -> None:
    expected = np.nan if rule.valid_max is None else 1.0
    np.testing.assert_array_equal(decode(raw, rule, area=np.ones(1)), np.full((1, 1), expected))


def test_flags_are_tested_on_the_raw_value_before_any_scale() -> None:
    raw = np.array([[-32768, 100, 0]], dtype=np.int16)
    found = decode(raw, DecodeRule(missing_values=(-32768.0,), cf_scale=0.01, scale=10.0, offset=1.0))
    np.testing.assert_array_equal(found, np.array([[np.nan, 11.0, 1.0]], np.float32))
    assert decode(raw, DecodeRule(missing_values=(1.0,), cf_scale=0.01))[0, 1] == 1.0, "1.0 is only the scaled value"


def test_valid_range_is_tested_on_the_canonical_value_and_includes_its_ends() -> None:
    rule = DecodeRule(scale=2.0, valid_min=0.0, valid_max=10.0)
    found = decode(np.array([[-1, 0, 5, 6]], dtype=np.int32), rule)
    np.testing.assert_array_equal(found, np.array([[np.nan, 0.0, 10.0, np.nan]], np.float32))


def test_flow_over_area_becomes_a_depth_per_basin() -> None:
    rule = DecodeRule(area_factor=86.4, area_array="area")
    found = decode(np.array([[10.0], [10.0]]), rule, area=np.array([86.4, 864.0]))
    np.testing.assert_allclose(found, [[10.0], [1.0]], rtol=1e-7)
    with pytest.raises(ValueError, match="needs the basin areas"):
        decode(np.array([[10.0]]), rule)


def test_zero_is_a_value() -> None:
    for dtype in DTYPES:
        assert decode(np.zeros((1, 1), dtype), DecodeRule(valid_min=0.0))[0, 0] == 0.0


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("scale", "offset"), [(0.01, None), (0.1, 5.0), (None, -273.15), (1e-4, 12.5)])
def test_packed_values_are_xarrays_within_its_rounding(
    tmp_path: Path, zarr_format: int, scale: float | None, offset: float | None
) -> None:
    store = write_store(
        tmp_path / "s.zarr",
        variables=["precipitation"],
        zarr_format=zarr_format,
        dtype="int16",
        fill_value=-32768,
        missing_as=-32768,
        missing={"precipitation": lambda basins, steps: np.arange(basins * steps).reshape(basins, steps) % 7 == 2},
        scale_factor=scale,
        add_offset=offset,
    )
    rule = DecodeRule(missing_values=(-32768.0,), cf_scale=scale or 1.0, cf_offset=offset or 0.0)
    found = decode(store.arrays["precipitation"].raw, rule)
    np.testing.assert_array_equal(found, store.truth["precipitation"])
    with xr.open_zarr(store.path, chunks=None, consolidated=False) as data:
        theirs = data["precipitation"].to_numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(theirs))
    # xarray computes in float32 or float64 by version and attributes; we in float64 with one cast at the end.
    np.testing.assert_allclose(found, theirs, rtol=1e-6)
    assert np.nanmean(found.astype(np.float64)) == pytest.approx(np.nanmean(theirs.astype(np.float64)), rel=1e-6)
