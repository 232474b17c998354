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


@given(shape=SHAPES, offset=st.integers(0, 20), spare=st.integers(0, 300), seed=st.integers(0, 9))
def test_windows_are_the_slices_of_the_pool_and_nothing_beside_is_written(shape, offset, spare, seed):
    steps, variables, windows = shape
    rng = np.random.default_rng(seed)
    pool = rng.random((steps + spare, variables), dtype=np.float32)
    row = rng.integers(0, spare + 1, windows)
    # Memory before and after the batch, which may begin at any value of a cache line.
    memory = np.full(offset + windows * steps * variables + 20, -1, np.float32)
    out = memory[offset : memory.size - 20].reshape(windows, steps * variables)
    copy_windows(pool, row, out)
    wanted = np.stack([pool[r : r + steps].reshape(-1) for r in row]) if windows else out
    np.testing.assert_array_equal(out, wanted)
    assert (memory[:offset] == -1).all()
    assert (memory[memory.size - 20 :] == -1).all()


@pytest.mark.parametrize("windows", [3, 800])
@pytest.mark.parametrize("outside", [-1, 11])
def test_a_window_outside_the_pool_is_refused(windows, outside):
    pool = np.zeros((375, 1), np.float32)
    row = np.zeros(windows, np.int64)
    row[-1] = outside
    with pytest.raises(IndexError, match="not inside the pool"):
        copy_windows(pool, row, np.empty((windows, 365), np.float32))
