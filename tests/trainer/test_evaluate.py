"""Predictions come back through xarray as they were, and the scores are those of the stored series."""

import random

import numpy as np
import pytest
import torch
import xarray as xr

from fake_loader import FakeLoader, synthetic_datasets, with_value
from headrace.schemas.errors import ConfigError
from headrace.schemas.windows import WindowSpec
from headrace.trainer import predictions as predictions_module
from headrace.trainer.evaluate import PredictionError, evaluate
from headrace.trainer.metrics import METRIC_COLUMNS
from headrace.trainer.model import build_model
from headrace.trainer.model_config import ModelConfig
from headrace.trainer.run_folder import read_csv
from headrace.trainer.time_axis import TimeAxis

WINDOW = WindowSpec(hindcast_length=5, forecast_length=2, warmup_length=4)
UNITS = {("set_a", "streamflow"): "mm/day", ("set_b", "streamflow"): "m3/s", ("set_a", "stage"): "m"}


def make(targets=2, shuffle=False, **changes):
    loader = FakeLoader(synthetic_datasets(targets=targets, missing=0.2), WINDOW, batch_size=9, shuffle=shuffle)
    config = ModelConfig(num_inputs=2, num_statics=1, hidden_size=4, num_targets=targets, dropout=0.5)
    times = {
        "set_a": TimeAxis(values=np.arange(40), units="days since 2000-01-01"),
        "set_b": TimeAxis(values=np.arange(0, 240, 6), units="hours since 1999-12-31", calendar="noleap"),
    }
    return build_model(config, seed=0), loader, times


def slow_series(model, loader):
    """Predict window by window, last target step only."""
    model.eval()
    length = loader.window.length
    series = {}
    for batch in loader:
        with torch.no_grad():
            sim = loader.denormalize(model(batch.x, batch.static, 1), batch)[:, 0].numpy()
        obs = loader.denormalize(batch.y[:, -1:], batch)[:, 0].numpy()
        for i in range(len(sim)):
            key = (int(batch.dataset[i]), int(batch.basin[i]), int(batch.start[i]) + length - 1)
            series[key] = (sim[i], obs[i])
    return series


def check(store, loader, series):
    for d, name in enumerate(loader.dataset_ids):
        with xr.open_zarr(store, group=name) as ds:
            assert ds.basin.values.tolist() == loader.basin_ids[d]
            for v, target in enumerate(loader.y_names):
                for kind, place in (("sim", 0), ("obs", 1)):
                    array = ds[f"{target}_{kind}"]
                    expected = np.full(array.shape, np.nan, np.float32)
                    for (dd, b, t), values in series.items():
                        if dd == d:
                            expected[b, t] = values[place][v]
                    np.testing.assert_allclose(array.values, expected, rtol=1e-5, atol=1e-6)
                    assert array.dtype == np.float32
                    assert array.dims == ("basin", "time")
                    assert array.attrs.get("units") == UNITS.get((name, target))


@pytest.mark.parametrize("shuffle", [False, True])
def test_predictions_read_back_through_xarray_whatever_the_order(tmp_path, shuffle, monkeypatch):
    # Small chunks and a buffer of one block: blocks are cut, evicted and read again.
    monkeypatch.setattr(predictions_module, "CHUNK_STEPS", 16)
    monkeypatch.setattr(predictions_module, "CHUNK_VALUES", 32)
    monkeypatch.setattr(predictions_module, "BUFFER_NBYTES", 1)
    model, loader, times = make(shuffle=shuffle)
    series = slow_series(model, loader)
    model.train()
    result = evaluate(model, loader, tmp_path / "test", times=times, units=UNITS)
    assert model.training
    assert result.num_windows == len(series) == 5 * 34
    check(result.predictions, loader, series)
    assert sorted(path.name for path in (tmp_path / "test").iterdir()) == ["metrics.csv", "predictions.zarr"]


def test_rows_over_all_data_sets_mix_no_units(tmp_path):
    model, loader, times = make()
    done = {}
    for name, units in {"mixed": UNITS, "same": UNITS | {("set_b", "streamflow"): "mm d-1"}}.items():
        rows = read_csv(evaluate(model, loader, tmp_path / name, times=times, units=units).metrics)
        done[name] = {(row["scope"], row["dataset_id"], row["target"]): row for row in rows if row["scope"] != "basin"}
    for (scope, _, target), row in done["mixed"].items():
        mixed = scope == "all"
        assert [name for name in ("rmse", "bias", "nse_pooled") if not row[name]] == (
            ["rmse", "bias", "nse_pooled"] if mixed else []
        )
        assert all(row[name] for name in ("nse", "kge", "pbias"))
        reason = {"streamflow": "different_units: m3/s, mm/day", "stage": "different_units: m, unknown"}[target]
        assert (reason in row["note"]) == mixed
        assert ("different_time_steps: 21600 s, 86400 s" in row["note"]) == mixed
        assert not mixed or not row["peak_timing"]
    same = done["same"]["all", "", "streamflow"]
    assert all(same[name] for name in ("rmse", "bias", "nse_pooled"))
    assert "different_units" not in same["note"]


def test_times_are_decoded_in_each_data_sets_calendar(tmp_path):
    model, loader, times = make()
    result = evaluate(model, loader, tmp_path, times=times)
    with xr.open_zarr(result.predictions, group="set_a") as ds:
        assert ds.time.values[31] == np.datetime64("2000-02-01")
    with xr.open_zarr(result.predictions, group="set_b") as ds:
        assert ds.time.dt.calendar == "noleap"
        assert str(ds.time.values[4]) == "2000-01-01 00:00:00"


def test_scores_are_those_of_the_stored_series(tmp_path):
    model, loader, times = make()
    result = evaluate(model, loader, tmp_path, times=times)
    rows = read_csv(result.metrics)
    assert tuple(rows[0]) == METRIC_COLUMNS
    assert len(rows) == 2 * (5 + 2 + 1)
    for row in rows:
        if row["scope"] != "basin":
            continue
        with xr.open_zarr(result.predictions, group=row["dataset_id"]) as ds:
            basin = ds.sel(basin=row["basin_id"])
            obs = basin[f"{row['target']}_obs"].values.astype(np.float64)
            sim = basin[f"{row['target']}_sim"].values.astype(np.float64)
        seen = ~np.isnan(obs)
        expected = 1 - np.sum((sim - obs)[seen] ** 2) / np.sum((obs[seen] - obs[seen].mean()) ** 2)
        assert float(row["nse"]) == pytest.approx(expected, rel=1e-6)
        assert int(row["count"]) == seen.sum()
        # Of 26 to 34 steps the highest 2 % are one step, of fewer none.
        high = (row["fhv"], row["note"])
        if seen.sum() < 26:
            assert high[0] == ""
            assert "too_few_high_flows" in high[1]
        else:
            assert float(high[0]) == pytest.approx(100 * (sim[seen].max() / obs[seen].max() - 1), rel=1e-5)
    assert {bool(row["fhv"]) for row in rows} == {True, False}


def test_empty_parts_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions_module, "CHUNK_STEPS", 5)
    model, loader, times = make(targets=1)
    times["set_a"] = TimeAxis(values=np.arange(400), units="days since 2000-01-01")
    result = evaluate(model, loader, tmp_path, times=times)
    chunks = list((result.predictions / "set_a" / "streamflow_sim" / "c").rglob("*"))
    # Steps 6 to 39 of 400, five to a chunk.
    assert sorted(int(path.name) for path in chunks if path.is_file()) == list(range(1, 8))


def test_evaluating_again_replaces_the_old_results(tmp_path):
    model, loader, times = make()
    evaluate(model, loader, tmp_path, times=times)
    evaluate(model, loader, tmp_path, times=times, units=UNITS)
    check(tmp_path / "predictions.zarr", loader, slow_series(model, loader))


def test_a_failed_pass_leaves_the_old_results(tmp_path):
    model, loader, times = make()
    first = evaluate(model, loader, tmp_path, times=times, units=UNITS)
    before = first.metrics.read_bytes()
    datasets = synthetic_datasets(targets=2, missing=0.2)
    x = datasets["set_b"].x.copy()
    x[1, 30] = np.nan
    bad = FakeLoader(with_value(datasets, "set_b", x=x), WINDOW, batch_size=9, shuffle=False)
    with pytest.raises(PredictionError, match=r"(?s)set_b/set_b_01 \(start 24\).*inputs that are not finite"):
        evaluate(model, bad, tmp_path, times=times)
    assert first.metrics.read_bytes() == before
    check(first.predictions, loader, slow_series(model, loader))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.csv", "predictions.zarr"]


def test_a_missing_or_short_time_axis_is_refused(tmp_path):
    model, loader, times = make()
    with pytest.raises(ConfigError, match="set_b"):
        evaluate(model, loader, tmp_path, times={"set_a": times["set_a"]})
    times["set_b"] = TimeAxis(values=np.arange(20), units="days since 2000-01-01")
    with pytest.raises(ConfigError, match=r"(?s)outside the time axis.*set_b.*steps 0 to 19"):
        evaluate(model, loader, tmp_path, times=times)


def test_a_time_axis_of_another_calendar_has_dates_for_the_eye():
    axis = TimeAxis(values=np.array([58, 59, 60]), units="days since 2001-01-01", calendar="360_day")
    assert axis.dates().astype("datetime64[D]").astype(str).tolist() == ["2001-02-28", "2001-02-28", "2001-03-01"]
    with pytest.raises(ConfigError, match="row of integers"):
        TimeAxis(values=np.array([0.5]), units="days since 2001-01-01")


def test_orders_drawn_at_random_give_the_same_store(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions_module, "CHUNK_STEPS", 8)
    monkeypatch.setattr(predictions_module, "CHUNK_VALUES", 8)
    monkeypatch.setattr(predictions_module, "BUFFER_NBYTES", 1500)
    generator = random.Random(4)
    cells = [(d, b, t) for d, n in ((0, 3), (1, 2)) for b in range(n) for t in range(20)]
    generator.shuffle(cells)
    axis = TimeAxis(values=np.arange(20), units="days since 2000-01-01")
    ids = [["a", "b", "c"], ["d", "e"]]
    with predictions_module.PredictionWriter(
        tmp_path / "p.zarr", ["x", "y"], ids, ["q"], {"x": axis, "y": axis}
    ) as writer:
        for first in range(0, len(cells), 7):
            d, b, t = np.array(cells[first : first + 7]).T
            value = (100 * d + 10 * b + t / 100)[:, None]
            writer.add(d, b, t, value, -value)
    for d, name in enumerate("xy"):
        with xr.open_zarr(tmp_path / "p.zarr", group=name) as ds:
            expected = 100 * d + 10 * np.arange(len(ids[d]))[:, None] + np.arange(20) / 100
            np.testing.assert_allclose(ds.q_sim.values, expected, rtol=1e-6)
            np.testing.assert_allclose(ds.q_obs.values, -expected, rtol=1e-6)
