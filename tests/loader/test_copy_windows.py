"""Windows copied out of a pool, by either way, against slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.loader.copy_windows import copy_windows

# (steps, variables, windows): short ones; long ones in a small batch; long ones in a batch of more than a mebibyte.
SHAPES = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(1, 9), st.integers(0, 50)),
    st.tuples(st.integers(130, 140), st.integers(1, 3), st.just(3)),
    st.tuples(st.integers(365, 380), st.integers(1, 8), st.just(730)),
)


@given(
    shape=SHAPES,
    targets=st.integers(0, 3),
    offset=st.integers(0, 20),
    spare=st.integers(0, 300),
    seed=st.integers(0, 9),
)
def test_windows_are_the_slices_of_the_pools_and_nothing_beside_is_written(shape, targets, offset, spare, seed):
    steps, variables, windows = shape
    rng = np.random.default_rng(seed)
    pools = tuple(rng.random((steps + spare, width), dtype=np.float32) for width in (variables, targets))
    first = rng.integers(0, spare + 1, windows)
    rows, lengths = (first, first + steps - 1), (steps, 1)
    # Memory before and after a batch, which may begin at any value of a cache line.
    memory, out = [], []
    for pool, length in zip(pools, lengths, strict=True):
        size = windows * length * pool.shape[1]
        memory.append(np.full(offset + size + 20, -1, np.float32))
        out.append(memory[-1][offset : offset + size].reshape(windows, length * pool.shape[1]))
    copy_windows(pools, rows, tuple(out))
    for pool, row, length, got, around in zip(pools, rows, lengths, out, memory, strict=True):
        wanted = np.stack([pool[r : r + length].reshape(-1) for r in row]) if windows else got
        np.testing.assert_array_equal(got, wanted)
        assert (around[:offset] == -1).all()
        assert (around[offset + got.size :] == -1).all()


@pytest.mark.parametrize("windows", [3, 800])
@pytest.mark.parametrize(("x_row", "y_row"), [(-1, 0), (11, 0), (0, -1), (0, 375)])
def test_a_window_outside_the_pool_is_refused(windows, x_row, y_row):
    pool = np.zeros((375, 1), np.float32)
    rows = np.zeros((2, windows), np.int64)
    rows[:, -1] = x_row, y_row
    with pytest.raises(IndexError, match="not inside the pool"):
        copy_windows(
            (pool, pool), tuple(rows), (np.empty((windows, 365), np.float32), np.empty((windows, 1), np.float32))
        )
