"""Compiled decoding equals the NumPy way bit for bit, where it says that it can be used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.decode import decode
from headrace.decode_floats import decode_rows, float_rule
from headrace.schemas.variables import DecodeRule

FLAGS = (-999.0, 0.1, 0.0, 9.969209968386869e36, 1e40, -1.7976931348623157e308, np.inf, np.nan)
BOUNDS = (None, -1e39, -5.0, 0.0, 0.1, 1e39)
VALUES = (*FLAGS, -np.inf, -0.0, 1e-46, 3.5e38, 1e300, 5.0, np.float64(np.float32(0.1)))


@settings(max_examples=60)
@given(
    st.sampled_from(["f4", "f8"]),
    st.lists(st.sampled_from(FLAGS), max_size=3),
    st.sampled_from(BOUNDS),
    st.sampled_from(BOUNDS),
    st.data(),
)
def test_every_bit_is_that_of_numpy(kind, flags, low, high, data):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=40))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rule = DecodeRule(missing_values=tuple(flags), valid_min=low, valid_max=high)
    with np.errstate(over="ignore"):
        stored = np.where(rng.random(shape) < 0.5, rng.choice(VALUES, shape), rng.normal(0, 5, shape)).astype(kind)
    begin = data.draw(st.integers(0, shape[1] - 1))
    raw, before = stored[:, begin:], data.draw(st.integers(0, 3))
    out = np.full((shape[0], before + raw.shape[1] + 2), 7, np.float32)
    expected = out.copy()
    decode(raw, rule, out=expected[:, before : before + raw.shape[1]])
    decode_rows(raw, float_rule(rule, raw.dtype), out, before)
    assert out.tobytes() == expected.tobytes()


def test_rules_that_compute_and_other_types_are_left_to_numpy():
    assert float_rule(DecodeRule(scale=2.0), np.dtype("f4")) is None
    assert float_rule(DecodeRule(area_factor=1.0, area_array="area"), np.dtype("f8")) is None
    assert float_rule(DecodeRule(), np.dtype("i2")) is None
    assert float_rule(DecodeRule(), np.dtype("f8").newbyteorder()) is None


@pytest.mark.parametrize(("rows", "columns", "first"), [(2, 4, 1), (3, 4, 0), (2, 4, -1)])
def test_what_does_not_fit_is_refused(rows, columns, first):
    rule = float_rule(DecodeRule(), np.dtype("f8"))
    with pytest.raises(IndexError, match="do not fit"):
        decode_rows(np.zeros((2, 4)), rule, np.zeros((rows, columns), np.float32), first)
