"""Statistics are those of the training period and basins, whatever the order and the chunks."""

import numpy as np
import pytest
import zarr

from headrace.indexer import units
from indexing import build_inline, config, dataset, date_of, rows
from synthetic import write_store


def stats(out, **where):
    return {(r["scope"], r["variable"], r["basin"]): r for r in rows(out, "stats", **where)}


def fill_with(store, values):
    group = zarr.open_group(str(store.path), mode="r+")
    for name in store.variables:
        array = group[name]
        array[...] = values if store.layouts[name].dims[0] == "basin" else values.T


def test_statistics_do_not_depend_on_basin_order_or_chunks(tmp_path, monkeypatch):
    """I2, I3: the same basins in two orders, formats and chunkings, merged to 1e-12 of one another."""
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 5)
    rng = np.random.default_rng(1)
    values = 1e5 + 0.01 * rng.normal(size=(29, 60))
    ids = [f"{i:03d}" for i in range(29)]
    order = rng.permutation(29)
    one = write_store(tmp_path / "1.zarr", basins=ids, steps=60, dtype="float64", chunks=(7, 13))
    two = write_store(
        tmp_path / "2.zarr",
        basins=[ids[i] for i in order],
        steps=60,
        dtype="float64",
        zarr_format=3,
        dims=("time", "basin"),
        chunks=(5, 2),
        shards=(10, 4),
    )
    fill_with(one, values)
    fill_with(two, values[order])
    by_id = []
    for store, name in ((one, "i1"), (two, "i2")):
        build_inline(config({"a": dataset(store)}), tmp_path / name, monkeypatch)
        names = {r["basin"]: r["basin_id"] for r in rows(tmp_path / name, "basins")}
        found = stats(tmp_path / name, variable="streamflow")
        by_id.append({(s, names.get(b)): (r["count"], r["mean"], r["std"], r["min"]) for (s, _, b), r in found.items()})
    assert by_id[0].keys() == by_id[1].keys()
    for key, expected in by_id[0].items():
        np.testing.assert_allclose(by_id[1][key], expected, rtol=1e-9)
    rounded = values.astype("f4").astype("f8")
    np.testing.assert_allclose(by_id[0]["global", None][1:3], [rounded.mean(), rounded.std()], rtol=1e-9)


def test_statistics_leave_out_test_years_and_test_basins(tmp_path, monkeypatch):
    """I13: a drift that reaches the statistics would leak what is to be predicted."""
    store = write_store(tmp_path / "s.zarr", basins=["a", "b"], steps=40, chunks=(1, 16))
    fill_with(store, np.arange(40.0) + np.array([[0.0], [1000.0]]))
    section = dataset(
        store,
        basins={"train": ["a"], "test": ["a", "b"]},
        t_range_train=[date_of(store, 0), date_of(store, 19)],
        t_range_test=[date_of(store, 20), date_of(store, 39)],
    )
    build_inline(config({"x": section}), tmp_path / "i", monkeypatch)
    found = stats(tmp_path / "i", variable="streamflow")
    assert set(found) == {("global", "streamflow", -1), ("dataset", "streamflow", -1), ("basin", "streamflow", 0)}
    for row in found.values():
        assert (row["count"], row["mean"], row["max"]) == (20, 9.5, 19.0)


def test_warmup_reaches_back_over_the_split_date_but_targets_do_not(tmp_path, monkeypatch):
    """I13."""
    store = write_store(tmp_path / "s.zarr", basins=1, steps=40)
    section = dataset(
        store,
        t_range_train=[date_of(store, 0), date_of(store, 19)],
        t_range_test=[date_of(store, 20), date_of(store, 39)],
    )
    window = {"hindcast_length": 6, "forecast_length": 2, "warmup_length": 5}
    build_inline(config({"x": section}, window=window), tmp_path / "i", monkeypatch)
    (train,) = rows(tmp_path / "i", "windows", split="train")
    (test,) = rows(tmp_path / "i", "windows", split="test")
    assert (train["start"], train["stop"]) == (0, 20 - 8 + 1)
    assert (test["start"], test["stop"]) == (20 - 5, 40 - 8 + 1)


def test_global_statistics_merge_all_data_sets(tmp_path, monkeypatch):
    stores = {n: write_store(tmp_path / f"{n}.zarr", dataset=i, steps=20 + i) for i, n in enumerate("ba")}
    build_inline(config({n: dataset(s) for n, s in stores.items()}), tmp_path / "i", monkeypatch)
    every = np.concatenate([s.truth["streamflow"].astype("f8").ravel() for s in stores.values()])
    (row,) = rows(tmp_path / "i", "stats", scope="global", variable="streamflow")
    assert (row["dataset_id"], row["count"]) == ("", every.size)
    np.testing.assert_allclose([row["mean"], row["std"]], [every.mean(), every.std()], rtol=1e-12)


@pytest.mark.parametrize("kind", ["constant", "empty"])
def test_variable_that_cannot_be_scaled_is_named(tmp_path, monkeypatch, kind):
    store = write_store(tmp_path / "s.zarr")
    array = zarr.open_group(str(store.path), mode="r+")["precipitation"]
    array[...] = 3.0 if kind == "constant" else np.nan
    report, _ = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    (warning,) = report.warnings
    assert warning.startswith("precipitation: ")
    assert "scaled by 1" in warning
    assert ("every training value is 3" in warning) == (kind == "constant")


def test_data_set_without_training_period_has_windows_but_no_statistics(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=20)
    section = dataset(store, t_range_train=None, t_range_test=["2000-01-01", "2000-01-20"])
    report, _ = build_inline(config({"a": section}), tmp_path / "i", monkeypatch)
    assert {r["count"] for r in rows(tmp_path / "i", "stats")} == {0}
    assert report.num_windows == 3 * 18


def test_moment_bins_hold_whole_chunks_of_at_least_4096_steps(tmp_path, monkeypatch):
    monkeypatch.setattr("synthetic_arrays.MAX_PACKED", 10**9)
    store = write_store(
        tmp_path / "s.zarr", basins=1, steps=4000, chunks=(1, 1500), step_seconds=3600, time_unit="hours"
    )
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 2000)
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    spans = [(r["start"], r["stop"], r["count"]) for r in rows(tmp_path / "i", "moments", variable="streamflow")]
    assert spans == [(0, 3000, 3000), (3000, 4000, 1000)]
