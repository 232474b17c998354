"""The plan of a scan: every chunk of a configured basin in exactly one unit, every unit in exactly one task."""

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.indexer import units
from headrace.indexer.parts import settle
from headrace.indexer.units import bundle, time_bins
from headrace.schemas.errors import SourceError
from headrace.schemas.grid import AxisGrid, ChunkGrid
from indexing import build_inline, config, dataset, some_unit
from synthetic import write_attributes, write_store


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_bins_are_whole_chunks_of_4096_steps_or_more(extent, chunk_size):
    grid = ChunkGrid(basin=AxisGrid(extent=1, chunk_size=1), time=AxisGrid(extent=extent, chunk_size=chunk_size))
    bins = time_bins(grid)
    assert (bins[0][0], bins[-1][1]) == (0, grid.time.num_chunks)
    assert all(a[1] == b[0] for a, b in pairwise(bins))
    for first, stop in bins[:-1]:
        assert (stop - first) * chunk_size >= units.MIN_BIN_STEPS
        assert (stop - first - 1) * chunk_size < units.MIN_BIN_STEPS


@given(st.lists(st.integers(1, 3 * units.TASK_NBYTES), max_size=50))
def test_bundles_keep_order_and_bounds_and_only_a_single_unit_may_exceed_them(sizes):
    planned = [some_unit(key=str(i), nbytes=size) for i, size in enumerate(sizes)]
    bundles = bundle(planned)
    assert [u for b in bundles for u in b] == planned
    for found in bundles:
        assert len(found) == 1 or sum(u.nbytes for u in found) <= units.TASK_NBYTES
        assert 0 < len(found) <= units.TASK_UNITS


def test_many_tiny_units_make_few_tasks():
    """F1: 200,000 units of 4 KB become some hundred tasks."""
    bundles = bundle(some_unit(nbytes=4096) for _ in range(200_000))
    assert len(bundles) == -(-200_000 // units.TASK_UNITS)


def test_only_basin_chunks_with_configured_basins_are_scanned(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", basins=9, steps=20, chunks=(2, 5))
    ids = [store.basin_ids[i] for i in (2, 8)]
    _, scanned = build_inline(config({"a": dataset(store, basins=ids)}), tmp_path / "i", monkeypatch)
    assert {(u.basin_chunk, u.rows) for t in scanned.tasks for u in t.units} == {(1, (2, 4)), (4, (8, 9))}


def test_tasks_carry_locators_only(tmp_path, monkeypatch):
    """D7, F3: a task is small, and a copy of it means the same."""
    store = write_store(tmp_path / "s.zarr", basins=50, steps=400, fill_value=0.0)
    _, scanned = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    packed = pickle.dumps(scanned.tasks[0])
    assert len(packed) < 2000
    assert pickle.loads(packed) == scanned.tasks[0]


def test_key_follows_the_areas_of_the_unit(tmp_path, monkeypatch):
    """Another area means other values, though no chunk of the time series changed."""
    store = write_store(tmp_path / "s.zarr", basins=["a", "b"], chunks=(1, 20), attrs={"streamflow": {"units": "m3/s"}})
    depth = {"physical": "streamflow", "per_area": "size", "unit": "mm/day"}
    names = {"target": {"streamflow": depth}, "constant": {"size": {"physical": "area", "scale": 2.0, "unit": "km2"}}}
    keys = []
    for area in (3.0, 4.0):
        attributes = write_attributes(tmp_path / f"{area}.zarr", ["a", "b"], {"area": [1.0, area]})
        section = dataset(store, attributes=str(attributes), variables=names)
        _, scanned = build_inline(config({"x": section}), tmp_path / f"i{area}", monkeypatch)
        keys.append(scanned.keys)
    assert keys[0][0] == keys[1][0]
    assert keys[0][1] != keys[1][1]


def test_parts_on_another_disk_are_missed_in_words(tmp_path):
    with pytest.raises(SourceError, match="parts that workers wrote are not here") as caught:
        settle(tmp_path, [["a", "b"]], {"a": "x.parquet"})
    assert "1 units without a part" in str(caught.value)
