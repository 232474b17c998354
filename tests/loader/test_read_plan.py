"""Read groups: every stored chunk that is needed lies in exactly one, and no other does (C1, C2)."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace
from build_here import build_here
from headrace.loader.layout import lay_out
from headrace.loader.read_plan import open_dataset, plan_reads, slot_columns
from headrace.loader.sources import load_sources
from headrace.loader.spec import resolve_spec
from headrace.loader.windows import load_windows
from layouts import StoreLayout, store_layouts

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(store_layouts(with_gaps=False), st.sampled_from([1, 200, 10_000, 2**25]), st.booleans())
def test_every_needed_chunk_is_in_one_group(store: StoreLayout, most_nbytes: int, some: bool):
    names = list(store.variables)
    with tempfile.TemporaryDirectory() as name:
        written = store.write(Path(name) / "s.zarr")
        basins = list(written.basin_ids[::2]) if some else "all"
        data = {
            "datasets": {
                "a": {
                    "timeseries": str(written.path),
                    "basins": basins,
                    "t_range_train": ["1999-12-31", "2001-01-01"],
                    "variables": {"relevant": names[:1], "target": names[1:]},
                }
            },
            "window": {"hindcast_length": 1, "forecast_length": 0},
            "missing": {"target_nan_policy": "keep"},
        }
        with headrace.open_index(build_here(data, Path(name) / "index")) as index:
            sources = load_sources(index, ("a",))
            layout = lay_out(load_windows(index, resolve_spec(index, split="train")), 1)
            opened = [open_dataset(s) for s in sources]
            groups = plan_reads(opened, layout, most_nbytes)
            columns = slot_columns(opened, layout)
    wanted = {
        (v, int(row) // array.grid.basin.chunk_size, time_chunk)
        for v, array in enumerate(opened[0].arrays)
        for row in sources[0].store_rows
        for time_chunk in range(array.grid.time.num_chunks)
    }
    found = []
    for group in groups:
        rows = sources[0].store_rows[layout.basin[group.slots]]
        assert (rows >= group.basin_start).all()
        assert (rows < group.basin_stop).all()
        for v in group.variables:
            grid = opened[0].arrays[v].grid
            chunks = grid.time.chunks_of(group.step_start, group.step_stop)
            assert (group.step_start, group.step_stop) == (
                grid.time.bounds(chunks.start)[0],
                grid.time.bounds(chunks.stop - 1)[1],
            )
            found += [(v, grid.basin.chunk_of(group.basin_start), chunk) for chunk in chunks]
    assert sorted(found) == sorted(wanted)
    assert (columns >> 32 == 0).all()


def test_a_loader_reads_each_needed_chunk_once_and_no_other(joint, index):
    """A15, C2: ``joint`` trains on the first 70 of 120 and of 90 steps; windows reach back at most to step 0."""
    with headrace.WindowLoader(index, "train", memory_budget=2400) as loader:
        for _ in range(2):
            list(loader)
        chunks = loader.chunks_read, loader.bytes_read
    needed = index.sql(
        "SELECT count(*) AS chunks, sum(stored_nbytes)::BIGINT AS nbytes FROM chunks WHERE time_start < 70"
    ).to_pylist()[0]
    assert chunks == (needed["chunks"], needed["nbytes"])
