"""Scaled rows hold, bit for bit, what NumPy makes of the same values."""

import numpy as np
import pytest

from headrace.loader.lay import lay


@pytest.mark.parametrize("missing", [np.float32(0), np.float32(np.nan)])
@pytest.mark.parametrize("mask", [None, 3])
def test_one_pass_gives_what_numpy_gives(missing: np.float32, mask: int | None):
    rng = np.random.default_rng(5)
    values = rng.normal(1e3, 1e4, 1000).astype(np.float32)
    values[::7] = np.nan
    mean, std = np.float32(12.3), np.float32(0.7)
    rows = np.full((1000, 4), -1, np.float32)
    lay(values[:], mean, std, rows, column=1, missing=missing, mask=mask)
    gone = np.isnan(values)
    expected = np.where(gone, missing, (values - mean) / std)
    assert rows[:, 1].tobytes() == expected.astype(np.float32).tobytes()
    np.testing.assert_array_equal(rows[:, 3], gone if mask == 3 else -1)
    assert (rows[:, [0, 2]] == -1).all()


@pytest.mark.parametrize(("steps", "column", "mask"), [(5, 0, None), (3, 0, None), (4, 2, None), (4, 0, 2)])
def test_values_that_do_not_fit_the_rows_are_refused(steps: int, column: int, mask: int | None):
    values, rows = np.ones(steps, np.float32), np.zeros((4, 2), np.float32)
    with pytest.raises(IndexError, match="do not fit"):
        lay(values, np.float32(0), np.float32(1), rows, column=column, missing=np.float32(0), mask=mask)
    assert not rows.any()
