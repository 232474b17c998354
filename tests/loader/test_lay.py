"""Scaled rows hold, bit for bit, what NumPy makes of the same values."""

import numpy as np
import pytest

from headrace.decode import decode
from headrace.decode_floats import float_rule
from headrace.loader.lay import lay
from headrace.loader.placement import Lines
from headrace.schemas.variables import DecodeRule


@pytest.mark.parametrize("missing", [np.float32(0), np.float32(np.nan)])
@pytest.mark.parametrize("mask", [None, 3])
@pytest.mark.parametrize("kind", ["canonical", "f4", "f8"])
def test_lines_go_where_they_belong_and_hold_what_numpy_makes_of_them(missing: np.float32, mask: int | None, kind: str):
    rng = np.random.default_rng(5)
    stored = rng.normal(1e3, 1e4, (5, 1300)).astype("f4" if kind == "canonical" else kind)[:, 200:1200]
    stored[rng.random(stored.shape) < 0.1] = np.nan
    stored[rng.random(stored.shape) < 0.1] = -999
    rule = DecodeRule(missing_values=(-999.0,), valid_min=-2e3, valid_max=2.5e4)
    block = stored.copy() if kind == "canonical" else decode(stored, rule)
    source = np.array([1, 2, 4])
    mean, std = np.array([12.3, -4, 0.1], np.float32), np.array([0.7, 3, 1e-3], np.float32)
    lines = Lines(line=np.array([0, 1, 1, 2]), first=np.array([0, 7, 700, 512]), last=np.array([1000, 519, 701, 512]),
                  row=np.array([600, 20, 2, 1]))  # fmt: skip
    rows = np.full((1700, 4), -1, np.float32)
    plain = None if kind == "canonical" else float_rule(rule, stored.dtype)
    assert kind == "canonical" or plain is not None
    lay(stored, plain, source, lines, mean, std, rows=rows, column=1, missing=missing, mask=mask)
    expected, gone = np.full(1700, -1, np.float32), np.full(1700, -1, np.float32)
    for line, to, columns in lines:
        values = block[source[line], columns]
        gone[to] = np.isnan(values)
        expected[to] = np.where(np.isnan(values), missing, (values - mean[line]) / std[line])
    assert rows[:, 1].tobytes() == expected.tobytes()
    np.testing.assert_array_equal(rows[:, 3], gone if mask == 3 else np.full(1700, -1))
    assert (rows[:, [0, 2]] == -1).all()


@pytest.mark.parametrize(
    "wrong",
    [{"line": 3}, {"line": -1}, {"source": 3}, {"source": -1}, {"first": -1}, {"first": 5}, {"last": 1001}, {"row": -1},
     {"row": 1697}, {"column": 4}, {"mask": 4}, {"scales": 2},
     {"contiguous": 0}],
    ids=str,
)  # fmt: skip
def test_lines_that_do_not_fit_are_refused(wrong: dict[str, int]):
    block, rows = np.ones((3, 1000), np.float32), np.zeros((1700, 4), np.float32)
    place = {
        "line": 0,
        "source": 0,
        "first": 0,
        "last": 4,
        "row": 0,
        "column": 0,
        "mask": 1,
        "scales": 3,
        "contiguous": 1,
    } | wrong
    block = block if place["contiguous"] else np.asfortranarray(block)
    scale = np.ones(place["scales"], np.float32)
    source = np.array([place["source"], 1, 2])
    lines = Lines(**{name: np.array([place[name]]) for name in ("line", "first", "last", "row")})
    with pytest.raises(IndexError, match="do not fit"):
        lay(
            block, None, source, lines, scale, scale,
            rows=rows, column=place["column"], missing=np.float32(0), mask=place["mask"],
        )  # fmt: skip
    assert not rows.any()


def test_nothing_is_laid_where_there_is_nothing():
    rows, one = np.zeros((3, 1), np.float32), np.ones(3, np.float32)
    none = Lines(**{name: np.zeros(0, np.int64) for name in ("line", "first", "last", "row")})
    lay(np.ones((3, 0)), None, np.arange(3), none, one, one, rows=rows, column=0, missing=np.float32(0))
    assert not rows.any()
