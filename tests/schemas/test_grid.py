"""Chunk arithmetic: every element lies in exactly one chunk, and axes go back to their stored order."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.grid import AxisGrid, ChunkGrid

axes = st.builds(AxisGrid, extent=st.integers(0, 60), chunk_size=st.integers(1, 70))


@given(axes)
def test_chunks_partition_the_axis_in_order(axis: AxisGrid) -> None:
    bounds = [axis.bounds(chunk) for chunk in range(axis.num_chunks)]
    assert [i for start, stop in bounds for i in range(start, stop)] == list(range(axis.extent))
    assert all(start < stop for start, stop in bounds)
    assert all(stop - start == axis.chunk_size for start, stop in bounds[:-1])
    assert [axis.chunk_of(i) for i in range(axis.extent)] == [i // axis.chunk_size for i in range(axis.extent)]


@given(axes.filter(lambda a: a.extent > 0), st.data())
def test_chunks_of_a_range_are_those_of_its_elements(axis: AxisGrid, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, axis.extent - 1))
    stop = data.draw(st.integers(start + 1, axis.extent))
    assert list(axis.chunks_of(start, stop)) == sorted({axis.chunk_of(i) for i in range(start, stop)})


def test_positions_outside_the_axis_are_refused() -> None:
    axis = AxisGrid(extent=10, chunk_size=4)
    for call in (axis.chunk_of, axis.bounds):
        for position in (-1, 10):
            with pytest.raises(IndexError, match="outside"):
                call(position)


@pytest.mark.parametrize(("extent", "chunk_size"), [(-1, 1), (1, 0), (1, -1)])
def test_impossible_axes_are_refused(extent: int, chunk_size: int) -> None:
    with pytest.raises(ValueError, match="extent must be"):
        AxisGrid(extent=extent, chunk_size=chunk_size)


@pytest.mark.parametrize(
    "dims", sorted({p[:n] for p in permutations("btxy") for n in (2, 3, 4) if {"b", "t"} <= set(p[:n])})
)
def test_selection_and_object_index_follow_the_stored_order(dims: tuple[str, ...]) -> None:
    sizes = {"b": 5, "t": 7, "x": 1, "y": 1}
    grid = ChunkGrid(
        basin=AxisGrid(extent=5, chunk_size=2),
        time=AxisGrid(extent=7, chunk_size=3),
        time_first=dims.index("t") < dims.index("b"),
        extra=tuple(i for i, dim in enumerate(dims) if dim in "xy"),
    )
    values = np.arange(35).reshape(5, 7)
    stored = (values.T if grid.time_first else values).reshape([sizes[d] for d in dims])
    block = stored[grid.selection(slice(1, 4), slice(2, 6))]
    np.testing.assert_array_equal(block.T if grid.time_first else block, values[1:4, 2:6])
    assert grid.object_index(1, 2) == tuple({"b": 1, "t": 2}.get(d, 0) for d in dims)
    assert grid.object_index(np.int32(1), np.int64(2)) == grid.object_index(1, 2)  # type: ignore[arg-type]


def test_statics_have_no_time_axis() -> None:
    grid = ChunkGrid(basin=AxisGrid(extent=5, chunk_size=2), time=AxisGrid(extent=1, chunk_size=1), has_time=False)
    assert grid.object_index(2, 0) == (2,)
    assert grid.selection(slice(0, 2), slice(0, 1)) == (slice(0, 2),)
