"""A second build scans only what changed, and gives the bytes of a fresh one."""

import os

import numpy as np
import pytest
import zarr

from headrace.indexer import units
from headrace.schemas.errors import ReadError
from indexing import build_inline, config, dataset, date_of, rows, table_bytes
from synthetic import write_store


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    """One time chunk per unit, two units per task."""
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 1)
    monkeypatch.setattr(units, "TASK_UNITS", 2)


@pytest.fixture
def store(tmp_path):
    return write_store(tmp_path / "s.zarr", basins=6, steps=40, chunks=(2, 10), variables=("rain", "flow"))


def rewrite(path, name, box, value):
    """Write into one chunk and make sure that its file has a new time."""
    array = zarr.open_group(str(path), mode="r+")[name]
    array[box] = value
    first = array.metadata.encode_chunk_key(tuple(s.start // c for s, c in zip(box, array.chunks, strict=True)))
    os.utime(path / name / first, ns=(1, 1))


def test_second_build_reads_no_chunk(store, tmp_path, monkeypatch):
    settings = config({"a": dataset(store)})
    _, first = build_inline(settings, tmp_path / "i", monkeypatch)
    before, files = table_bytes(tmp_path / "i"), {p.name: p.stat() for p in (tmp_path / "i").iterdir() if p.is_file()}
    report, second = build_inline(settings, tmp_path / "i", monkeypatch)
    assert (len(first.keys), second.keys) == (24, [])
    assert (report.scan.units_scanned, report.scan.units_kept) == (0, 24)
    assert {p.name: p.stat() for p in (tmp_path / "i").iterdir() if p.is_file()} == files, "nothing is written again"
    (tmp_path / "i" / "runs.parquet").write_bytes(b"damaged")
    build_inline(settings, tmp_path / "i", monkeypatch)
    assert table_bytes(tmp_path / "i") == before


@pytest.mark.parametrize(
    "change",
    [
        {"window": {"hindcast_length": 5, "forecast_length": 1, "warmup_length": 0, "stride": 3}},
        {"missing": {"target_nan_policy": "drop_all_nan", "missing_policy": "drop"}},
        {"normalization": {"scope": "per_basin"}},
    ],
)
def test_new_window_or_policy_scans_nothing(store, tmp_path, monkeypatch, change):
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    _, second = build_inline(config({"a": dataset(store)}, **change), tmp_path / "i", monkeypatch)
    assert second.keys == []


def test_new_basin_list_weight_or_fewer_variables_scan_nothing(store, tmp_path, monkeypatch):
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    fewer = dataset(store, basins=[store.basin_ids[3]], weight=2.0, variables={"target": {"flow": "flow"}})
    _, second = build_inline(config({"a": fewer}), tmp_path / "i", monkeypatch)
    assert second.keys == []
    assert [r["basin_id"] for r in rows(tmp_path / "i", "basins")] == [store.basin_ids[3]]


def test_rewritten_chunk_costs_one_unit_and_gives_the_bytes_of_a_fresh_build(store, tmp_path, monkeypatch):
    """F7: a changed chunk must not leave old statistics or validity behind."""
    settings = config({"a": dataset(store)})
    build_inline(settings, tmp_path / "i", monkeypatch)
    rewrite(store.path, "flow", (slice(2, 4), slice(10, 19)), np.nan)
    _, second = build_inline(settings, tmp_path / "i", monkeypatch)
    assert len(second.keys) == 1
    (chunk,) = rows(tmp_path / "i", "chunks", variable="flow", basin_chunk=1, time_chunk=1)
    assert (chunk["state"], chunk["valid_count"]) == ("data", 2)
    build_inline(settings, tmp_path / "fresh", monkeypatch)
    assert table_bytes(tmp_path / "i") == table_bytes(tmp_path / "fresh")
    assert parts(tmp_path / "i") == parts(tmp_path / "fresh")


def parts(out):
    return sorted(p.name for p in (out / "parts").glob("*.parquet"))


def test_new_period_scans_only_units_that_its_edges_cut(store, tmp_path, monkeypatch):
    def with_train(first, last):
        return config({"a": dataset(store, t_range_train=[date_of(store, first), date_of(store, last)])})

    build_inline(with_train(0, 39), tmp_path / "i", monkeypatch)
    _, at_chunk_edge = build_inline(with_train(10, 29), tmp_path / "i", monkeypatch)
    assert at_chunk_edge.keys == []
    _, inside = build_inline(with_train(15, 29), tmp_path / "i", monkeypatch)
    assert {(u.array, u.steps) for t in inside.tasks for u in t.units} == {("rain", (10, 20)), ("flow", (10, 20))}


def test_appended_steps_scan_the_new_and_the_grown_chunk(tmp_path, monkeypatch):
    """A padded last chunk becomes data when the array grows, though its file may not change."""
    path = tmp_path / "s.zarr"
    store = write_store(path, basins=2, steps=35, chunks=(2, 10), variables=("rain", "flow"))
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    group = zarr.open_group(str(path), mode="r+")
    for name in ("rain", "flow", "time"):
        group[name].resize((2, 45) if name != "time" else (45,))
    group["time"][:] = np.arange(45)
    longer = dataset(store, t_range_train=["2000-01-01", "2000-02-14"])
    _, second = build_inline(config({"a": longer}), tmp_path / "i", monkeypatch)
    assert sorted({u.steps for t in second.tasks for u in t.units}) == [(30, 40), (40, 45)]


def test_other_decode_rule_scans_that_variable_again(store, tmp_path, monkeypatch):
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    variables = {"relevant": {"rain": {"physical": "rain", "scale": 2.0}}, "target": {"flow": "flow"}}
    _, second = build_inline(config({"a": dataset(store, variables=variables)}), tmp_path / "i", monkeypatch)
    assert {u.array for t in second.tasks for u in t.units} == {"rain"}
    assert len(second.keys) == 12


def test_fresh_forgets_what_was_there(store, tmp_path, monkeypatch):
    """A4: two scans of one store give the same bytes."""
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    before = table_bytes(tmp_path / "i")
    _, second = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch, fresh=True)
    assert len(second.keys) == 24
    assert table_bytes(tmp_path / "i") == before


def test_damaged_part_is_scanned_again(store, tmp_path, monkeypatch):
    settings = config({"a": dataset(store)})
    build_inline(settings, tmp_path / "i", monkeypatch)
    before = table_bytes(tmp_path / "i")
    victim = sorted((tmp_path / "i" / "parts").glob("*.parquet"))[0]
    victim.write_bytes(victim.read_bytes()[:100])
    _, second = build_inline(settings, tmp_path / "i", monkeypatch)
    assert len(second.keys) == 2
    assert table_bytes(tmp_path / "i") == before


def test_parts_of_data_sets_left_out_are_removed_once_the_manifest_stands(store, tmp_path, monkeypatch):
    other = write_store(tmp_path / "t.zarr", basins=2, steps=40, chunks=(2, 10), variables=("rain", "flow"))
    both = config({"a": dataset(store), "b": dataset(other)})
    build_inline(both, tmp_path / "i", monkeypatch)
    with_both = parts(tmp_path / "i")
    build_inline(both, tmp_path / "i", monkeypatch, datasets=["a"])
    assert len(with_both) == 16
    assert len(parts(tmp_path / "i")) == 12
    assert [r["dataset_id"] for r in rows(tmp_path / "i", "datasets")] == ["a"]


def test_two_data_sets_of_one_store_share_their_scan(store, tmp_path, monkeypatch):
    twice = config({"a": dataset(store), "b": dataset(store, basins=[store.basin_ids[0]])})
    _, scanned = build_inline(twice, tmp_path / "i", monkeypatch)
    assert len(scanned.keys) == len(set(scanned.keys)) == 24
    one, two = (rows(tmp_path / "i", "runs", dataset_id=d, variable="flow", basin=0) for d in "ab")
    assert [{**r, "dataset_id": ""} for r in one] == [{**r, "dataset_id": ""} for r in two]


def test_chunk_that_changes_during_the_scan_is_an_error(store, tmp_path, monkeypatch):
    settings = config({"a": dataset(store)})
    plan = units.plan_scan

    def plan_then_rewrite(inventory):
        planned = plan(inventory)
        rewrite(store.path, "flow", (slice(0, 2), slice(0, 10)), 1.0)
        return planned

    monkeypatch.setattr("headrace.indexer.build.plan_scan", plan_then_rewrite)
    with pytest.raises(ReadError, match="store changed while the index was built") as caught:
        build_inline(settings, tmp_path / "i", monkeypatch)
    assert "flow/0.0" in str(caught.value)
    assert not (tmp_path / "i" / "manifest.json").exists()
