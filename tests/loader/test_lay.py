"""Scaled rows hold, bit for bit, what NumPy makes of the same values."""

import numpy as np
import pytest

from headrace.loader.lay import lay
from headrace.loader.placement import Lines


@pytest.mark.parametrize("missing", [np.float32(0), np.float32(np.nan)])
@pytest.mark.parametrize("mask", [None, 3])
def test_lines_go_where_they_belong_and_hold_what_numpy_makes_of_them(missing: np.float32, mask: int | None):
    rng = np.random.default_rng(5)
    block = rng.normal(1e3, 1e4, (3, 1000)).astype(np.float32)
    block[rng.random(block.shape) < 0.1] = np.nan
    mean, std = np.array([12.3, -4, 0.1], np.float32), np.array([0.7, 3, 1e-3], np.float32)
    lines = Lines(line=np.array([0, 1, 1]), first=np.array([0, 7, 700]), last=np.array([1000, 519, 701]),
                  row=np.array([600, 20, 2]))  # fmt: skip
    rows = np.full((1700, 4), -1, np.float32)
    lay(block, lines, mean, std, rows, column=1, missing=missing, mask=mask)
    expected, gone = np.full(1700, -1, np.float32), np.full(1700, -1, np.float32)
    for line, to, columns in lines:
        values = block[line, columns]
        gone[to] = np.isnan(values)
        expected[to] = np.where(np.isnan(values), missing, (values - mean[line]) / std[line])
    assert rows[:, 1].tobytes() == expected.tobytes()
    np.testing.assert_array_equal(rows[:, 3], gone if mask == 3 else np.full(1700, -1))
    assert (rows[:, [0, 2]] == -1).all()


@pytest.mark.parametrize(
    "wrong",
    [{"line": 3}, {"line": -1}, {"first": -1}, {"first": 5}, {"last": 1001}, {"row": -1}, {"row": 1697}, {"column": 4},
     {"mask": 4}],
    ids=str,
)  # fmt: skip
def test_lines_that_do_not_fit_are_refused(wrong: dict[str, int]):
    block, rows, one = np.ones((3, 1000), np.float32), np.zeros((1700, 4), np.float32), np.ones(3, np.float32)
    place = {"line": 0, "first": 0, "last": 4, "row": 0, "column": 0, "mask": 1} | wrong
    lines = Lines(**{name: np.array([place[name]]) for name in ("line", "first", "last", "row")})
    with pytest.raises(IndexError, match="do not fit"):
        lay(block, lines, one, one, rows, column=place["column"], missing=np.float32(0), mask=place["mask"])
    assert not rows.any()
