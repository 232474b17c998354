"""What torchhydro 0.2.0 and Headrace make of the same store where they differ on purpose (docs/moving-over.md)."""

import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

from build_here import build_here
from headrace.loader.catalog import open_index
from headrace.loader.window_loader import WindowLoader
from headrace.schemas.config import MissingConfig
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import StaleIndexError
from synthetic import write_store
from torchhydro_environment import Torchhydro

pytestmark = [pytest.mark.slow, pytest.mark.network]

SHAPE = {"hindcast_length": 3, "forecast_length": 1, "warmup_length": 3}
RECORD = ("2000-01-01", "2000-02-09")
HOLE = slice(10, 30)


@pytest.fixture(scope="module")
def torchhydro():
    with Torchhydro() as process:
        yield process


def store_at(path, **changes):
    """Write 2 basins × 40 days of ``rain`` and ``q``."""
    return write_store(path, **{"basins": 2, "steps": 40, "variables": ("rain", "q"), **changes})


def hole(store_basins=2):
    missing = np.zeros((store_basins, 40), dtype=bool)
    missing[:, HOLE] = True
    return missing


def theirs(store, period=RECORD, split="train", **changes):
    """Return a question to torchhydro about a store."""
    source = {"dataset_id": "a", "timeseries_uri": str(store.path), "basins": list(store.basin_ids)}
    source |= {"relevant_cols": {"rain": "rain"}, "target_cols": {"flow": "q"}, "constant_cols": []}
    periods = {"train": list(RECORD), split: list(period)}
    return {"sources": [{**source, "periods": periods, **changes}], "shape": SHAPE, "split": split}


def ours(store, out, period=RECORD, split="train", basins="all", target="q", **sections):
    """Index a store and return the index."""
    entry = {"timeseries": str(store.path), "basins": basins, "t_range_train": RECORD, f"t_range_{split}": period}
    entry["variables"] = {"relevant": {"rain": "rain"}, "target": {"flow": target}}
    return open_index(build_here(parse_config({"datasets": {"a": entry}, "window": SHAPE, **sections}), out))


def served(index, **changes):
    """Return x and y of all windows, unscaled, in order."""
    with WindowLoader(
        index, **{"split": "train", "shuffle": False, "normalization": {"method": "none"}, **changes}
    ) as loader:
        batches = list(loader)
    return np.concatenate([b.x.numpy() for b in batches]), np.concatenate([b.y.numpy() for b in batches])


def mean_of(index, variable):
    return next(r["mean"] for r in index.stats().to_pylist() if r["variable"] == variable and r["scope"] == "global")


def runs(index, split="train"):
    return [[r["basin_id"], r["start"], r["stop"]] for r in index.windows(split).to_pylist()]


def test_plain_store_gives_the_same_values_in_both(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", missing={"rain": hole(), "q": hole()})
    answer = torchhydro.ask("values", **theirs(store))
    with ours(store, tmp_path / "index", missing={"target_nan_policy": "drop_all_nan"}) as index:
        x, y = served(index, normalization=None)
        for name, kind in (("rain", "relevant_cols"), ("flow", "target_cols")):
            row = next(r for r in index.stats().to_pylist() if r["variable"] == name and r["scope"] == "global")
            expected = answer["stats"][kind][name]
            assert row["count"] == expected["count"]
            assert [row["mean"], row["std"]] == pytest.approx([expected["mean"], expected["std"]], rel=1e-4)
    np.testing.assert_allclose(x, np.array(answer["x"]), atol=1e-3)
    np.testing.assert_allclose(y, np.array(answer["y"]), atol=1e-3)


def test_target_statistics_are_summed_in_double_precision(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=1)
    flow = store.truth["q"].astype(np.float64)
    stats = torchhydro.ask("values", **theirs(store))["stats"]["target_cols"]["flow"]
    assert stats["std"] == 1, "its variance came out as 0 or less"
    with ours(store, tmp_path / "index") as index:
        row = next(r for r in index.stats().to_pylist() if r["variable"] == "flow" and r["scope"] == "global")
    assert row["std"] == pytest.approx(flow.std(), rel=1e-12)


def test_statistics_are_over_the_training_period_where_the_source_range_starts_late(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr")
    period = ("2000-01-11", "2000-01-20")
    late = theirs(store, period, source_time_range=["2000-01-11", RECORD[1]])
    stats = torchhydro.ask("values", **late)["stats"]["relevant_cols"]["rain"]
    rain = store.truth["rain"]
    assert stats["mean"] == rain[:, 20:30].mean()
    with ours(store, tmp_path / "index", period) as index:
        assert mean_of(index, "rain") == rain[:, 10:20].mean()


def test_rewritten_store_is_never_served_with_old_windows_and_statistics(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr")
    question = theirs(store) | {"target_nan_policy": "drop_any_nan", "case_dir": str(tmp_path / "case")}
    old = torchhydro.ask("values", **question)
    with ours(store, tmp_path / "index") as index:
        store = store_at(tmp_path / "s.zarr", missing={"q": hole()}, dataset=1)
        with pytest.raises(StaleIndexError):
            served(index)
    new = torchhydro.ask("values", **question)
    assert new["stats"] == old["stats"]
    assert np.isnan(np.array(new["y"], dtype=float)).any()
    with ours(store, tmp_path / "index") as index:
        assert mean_of(index, "rain") == store.truth["rain"].mean()
        assert not np.isnan(served(index)[1]).any()


def test_flags_and_packing_are_honoured_for_inputs_too(torchhydro, tmp_path):
    flags = {"zarr_format": 3, "missing_as": -999.0, "flag_attribute": "missing_value"}
    flagged = store_at(tmp_path / "flagged.zarr", missing={"rain": hole()}, **flags)
    packed = store_at(tmp_path / "packed.zarr", dtype="int16", fill_value=0, scale_factor=0.5, add_offset=1.0, basins=1)
    plain = {"normalization": "none"}
    assert np.min(torchhydro.ask("values", **theirs(flagged), **plain)["x"]) == -999
    with ours(flagged, tmp_path / "a") as index:
        assert served(index)[0].min() == 0
    answer = torchhydro.ask("values", **theirs(packed), **plain)
    assert np.ravel(answer["x"][0]).tolist() == [0, 1, 2, 3]
    assert np.ravel(answer["y"][0]) == 2 * (packed.truth["q"][0, 3] - 1)
    with ours(packed, tmp_path / "b") as index:
        x, y = served(index)
    assert x[0, :, 0].tolist() == packed.truth["rain"][0, :4].tolist()
    assert y[0, 0, 0] == packed.truth["q"][0, 3]


def test_mask_marks_missing_steps_of_a_variable_that_is_there(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", missing={"rain": hole()})
    question = theirs(store) | {"missing_policy": "fill_and_mask"}
    assert np.shape(torchhydro.ask("values", **question)["x"])[-1] == 1
    with ours(store, tmp_path / "index", missing={"missing_policy": "fill_and_mask"}) as index:
        mask = served(index)[0][:37, :, 1]
    expected = np.lib.stride_tricks.sliding_window_view(hole()[0], 4)
    np.testing.assert_array_equal(mask, expected)


def test_every_window_is_served_and_batches_mix_time_chunks(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=5, chunks=(4, 10))
    ask = {"ask": "epochs", **theirs(store), "batch_size": 16, "number": 20}
    dropping = torchhydro.ask(**ask, drop_last=True)
    assert dropping["windows"] == 5 * 37
    assert dropping["served"] == 4 * 37, "the fifth basin alone fills no batch of its chunk group"
    assert dropping["chunks"] == [1]
    with (
        ours(store, tmp_path / "index") as index,
        WindowLoader(index, "train", batch_size=16, drop_last=True) as loader,
    ):
        seen, chunks = set(), []
        for _ in range(20):
            for batch in loader:
                seen.update(zip(batch.basin.tolist(), batch.start.tolist(), strict=True))
                chunks.append(len({start // 10 for start in batch.start.tolist()}))
    assert len(seen) == 5 * 37
    assert np.mean(chunks) > 3


def test_small_cache_reads_the_store_over_and_over(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=4, steps=400, chunks=(4, 50))
    shape = {"hindcast_length": 60, "forecast_length": 1, "warmup_length": 60}
    question = {**theirs(store, ("2000-01-01", "2001-02-03")), "shape": shape}
    ask = {"ask": "epochs", **question, "batch_size": 8, "number": 1, "drop_last": False}
    size = 4 * 400 * 2
    assert torchhydro.ask(**ask)["read"] == size
    assert torchhydro.ask(**ask, worker_cache_size_mb=0.001)["read"] > 50 * size


def test_statistics_are_right_whatever_the_order_of_dimensions(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=5, dims=("time", "basin"))
    one = store.basin_ids[1]
    stats = torchhydro.ask("values", **theirs(store, basins=[one]))["stats"]["relevant_cols"]["rain"]
    assert stats["mean"] != store.truth["rain"][1].mean()
    with ours(store, tmp_path / "index", basins=[one]) as index:
        assert mean_of(index, "rain") == store.truth["rain"][1].mean()


def test_chunk_shapes_are_kept_per_array(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=6, chunks={"rain": (6, 10), "q": (2, 40)})
    assert torchhydro.ask("values", **theirs(store))["chunks"] == [2, 10]
    with ours(store, tmp_path / "index") as index:
        found = index.sql("select variable, count(*) as n from chunks group by variable order by variable")
        assert found.to_pylist() == [{"variable": "flow", "n": 3}, {"variable": "rain", "n": 4}]


@pytest.mark.parametrize(("array", "kept"), [("stage", True), ("q_obs", False)])
def test_values_below_zero_are_refused_by_a_setting_not_by_a_name(torchhydro, tmp_path, array, kept):
    store = store_at(tmp_path / "s.zarr", basins=1, variables=("rain", array))
    stored = zarr.open_array(str(store.path), path=array, mode="r+")
    stored[...] = np.full(stored.shape, -1.0, dtype=np.float32)
    question = theirs(store, target_cols={"level": array}) | {"target_nan_policy": "drop_any_nan"}
    assert bool(torchhydro.ask("windows", **question)["a"]) == kept
    for target, windows in ((array, 1), ({"physical": array, "valid_min": 0}, 0)):
        with ours(store, tmp_path / f"index{windows}", target=target) as index:
            assert len(runs(index)) == windows


def test_zeros_of_a_format_2_store_with_fill_0_stay_zeros(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=1, fill_value=0.0)
    stored = zarr.open_array(str(store.path), path="rain", mode="r+")
    stored[...] = np.zeros(stored.shape, dtype=np.float32)
    with xr.open_zarr(store.path, consolidated=False, chunks=None) as data:
        assert np.isnan(data.rain.to_numpy()).all()
    assert torchhydro.ask("values", **theirs(store))["stats"]["relevant_cols"]["rain"]["count"] == 40
    with ours(store, tmp_path / "index") as index:
        assert mean_of(index, "rain") == 0
        assert served(index, missing={"missing_policy": "drop"})[0].shape[0] == 37


def test_default_target_policies_differ(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=1, missing={"q": hole(1)})
    question = theirs(store) | {"shape": {**SHAPE, "warmup_length": 0}}
    default = torchhydro.ask("windows", **question)
    assert default == torchhydro.ask("windows", **question, target_nan_policy="drop_all_nan")
    assert default != torchhydro.ask("windows", **question, target_nan_policy="drop_any_nan")
    assert MissingConfig().target_nan_policy == "drop_any_nan"


def test_bare_last_date_means_its_whole_day(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=1, steps=96, step_seconds=3600, time_unit="hours")
    period = ("2000-01-02", "2000-01-03")
    basin = store.basin_ids[0]
    assert torchhydro.ask("windows", **theirs(store, period), target_nan_policy="keep")["a"] == [[basin, 21, 46]]
    with ours(store, tmp_path / "index", period) as index:
        assert runs(index) == [[basin, 21, 69]]


def test_validation_keeps_every_window_in_both(torchhydro, tmp_path):
    store = store_at(tmp_path / "s.zarr", basins=1, missing={"q": hole(1)})
    period = ("2000-01-11", "2000-01-20")
    question = theirs(store, period, "valid") | {"target_nan_policy": "drop_any_nan"}
    basin = store.basin_ids[0]
    assert torchhydro.ask("windows", **question)["a"] == [[basin, 7, 17]]
    with ours(store, tmp_path / "index", period, "valid") as index:
        assert runs(index, "valid") == [[basin, 7, 17]]


def test_gaps_end_windows_and_periods_beyond_the_record_are_clipped(torchhydro, tmp_path):
    gap = store_at(tmp_path / "gap.zarr", basins=1, gaps={19: 3})
    with pytest.raises(ValueError, match="irregular time coordinate"):
        torchhydro.ask("windows", **theirs(gap))
    basin = gap.basin_ids[0]
    with ours(gap, tmp_path / "a", ("2000-01-01", "2000-02-12")) as index:
        assert runs(index) == [[basin, 0, 17], [basin, 20, 37]]
    whole = store_at(tmp_path / "whole.zarr", basins=1)
    beyond = ("1999-12-01", "2000-01-10")
    with pytest.raises(ValueError, match="does not cover"):
        torchhydro.ask("windows", **theirs(whole, beyond))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index = ours(whole, tmp_path / "b", beyond)
    with index:
        assert runs(index) == [[basin, 0, 7]]


def test_chunk_never_written_is_missing_unless_its_fill_value_is_0(torchhydro, tmp_path):
    gone = {"zarr_format": 3, "fill_value": -999.0, "chunks": (1, 10), "absent_chunks": {"q": [(0, 1)]}}
    store = store_at(tmp_path / "s.zarr", basins=1, **gone)
    basin = store.basin_ids[0]
    assert torchhydro.ask("windows", **theirs(store), target_nan_policy="drop_any_nan")["a"] == [[basin, 0, 37]]
    with ours(store, tmp_path / "index") as index:
        assert runs(index) == [[basin, 0, 7], [basin, 17, 37]]


def test_flag_attribute_beside_the_fill_value_of_a_format_2_array_counts(torchhydro, tmp_path):
    flag = {"missing_as": -999.0, "flag_attribute": "_FillValue", "fill_value": 0.0}
    store = store_at(tmp_path / "s.zarr", basins=1, missing={"q": hole(1)}, **flag)
    basin = store.basin_ids[0]
    assert torchhydro.ask("windows", **theirs(store), target_nan_policy="drop_any_nan")["a"] == [[basin, 0, 37]]
    with ours(store, tmp_path / "index") as index:
        assert runs(index) == [[basin, 0, 7], [basin, 27, 37]]
