"""FHV, FLV and peak timing on series made by hand, and scored from a store in memory that basins do not fill."""

import tracemalloc

import numpy as np
import pytest

from headrace.trainer import predictions
from headrace.trainer.flow_duration import high_flow_bias, low_flow_bias
from headrace.trainer.peak_timing import peak_timing_error, search_window
from headrace.trainer.predictions import PredictionWriter
from headrace.trainer.series_scores import SeriesScores, StepAxis, score_predictions
from headrace.trainer.time_axis import TimeAxis

DAILY = "days since 2000-01-01"


def test_high_flow_bias_compares_the_volumes_of_the_highest_two_percent():
    obs = np.arange(1.0, 101.0)
    # The two highest, 99 and 100, against 120 and 119.4; where they come does not matter.
    sim = np.where(np.arange(100) < 2, [120.0, 119.4] * 50, 1.0)
    assert high_flow_bias(obs, sim) == (pytest.approx(100 * (239.4 - 199) / 199), "")


def test_low_flow_bias_compares_logarithms_above_the_lowest_flow():
    obs = np.exp([0.0, 1.0, 2.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0])
    sim = np.exp([5.0, 5.5, 6.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0])
    # Σ(log Qo - log Qo_L) = 0 + 1 + 2, simulated 0 + 0.5 + 1: half the spread.
    value, note = low_flow_bias(obs, sim[::-1])
    assert value == pytest.approx(50.0)
    assert note == ""


@pytest.mark.parametrize(
    ("obs", "sim", "note"),
    [
        ([1.0], [1.0], "too_few_low_flows"),
        ([1.0] * 10, [*range(10)], "constant_low_flows"),
        ([0.0] * 4 + [1.0] * 6, [1.0] * 10, "constant_low_flows"),
        ([-1.0] + [1.0] * 9, [1.0] * 10, "negative_low_flows"),
    ],
)
def test_an_undefined_low_flow_bias_says_why(obs, sim, note):
    value, why = low_flow_bias(np.array(obs), np.array(sim, dtype=np.float64))
    assert np.isnan(value)
    assert why == note


def test_flows_that_are_zero_but_for_rounding_count_as_the_floor():
    obs = np.array([3e-7, -2e-7, 1.0, *[5.0] * 7])
    value, note = low_flow_bias(obs, np.array([-0.3, 1e-9, 1.0, *[5.0] * 7]))
    assert value == pytest.approx(0.0, abs=1e-9)
    assert note == "floored_low_flows"
    # In any unit, however small its numbers, only what is zero beside the simulation is.
    assert high_flow_bias(np.full(100, 2e-9), np.full(100, 3e-9)) == (pytest.approx(50.0), "")
    assert high_flow_bias(np.full(100, 1e-9), np.ones(100)) == (pytest.approx(np.nan, nan_ok=True), "zero_high_flows")
    # Large rivers come back from float32 with larger rounding.
    obs = np.array([4e-4, 0.0, 50.0, *[8000.0] * 7])
    assert low_flow_bias(obs, obs)[1] == "floored_low_flows"


def flood(steps, *places):
    values = np.ones(steps)
    for place in places:
        values[place] = 10.0
        values[place - 1] = values[place + 1] = 4.0
    return values


def test_peak_timing_is_the_mean_distance_to_the_simulated_peak():
    obs = flood(600, 100, 300, 500)
    sim = flood(600, 100, 302, 497)
    assert peak_timing_error(obs, sim, np.arange(600), 3) == (pytest.approx((0 + 2 + 3) / 3), "")


def test_a_local_maximum_at_the_very_step_counts_as_the_simulated_peak():
    obs, sim = flood(300, 150), flood(300, 152)
    sim[150] = 5.0
    assert peak_timing_error(obs, sim, np.arange(300), 3)[0] == 0.0
    sim[150] = 3.0
    assert peak_timing_error(obs, sim, np.arange(300), 3)[0] == 2.0


def test_peaks_beside_a_gap_or_an_edge_do_not_count():
    obs, sim = flood(300, 150), flood(300, 152)
    tick = np.arange(300)
    assert peak_timing_error(obs, sim, np.where(tick > 152, tick + 1, tick), 3)[1] == "no_peaks"
    assert peak_timing_error(obs, sim, np.where(tick > 153, tick + 1, tick), 3)[0] == 2.0
    assert peak_timing_error(obs[148:], sim[148:], tick[148:], 3)[1] == "no_peaks"
    assert peak_timing_error(obs[147:], sim[147:], tick[147:], 3)[0] == 2.0


@pytest.mark.parametrize(
    ("units", "values", "seconds", "window"),
    [
        (DAILY, [3, 4, 5], 86_400, 3),
        ("hours since 2000-01-01", [0, 1, 5], 3_600, 12),
        ("hours since 2000-01-01", [5, 8, 11], 10_800, 4),
        ("seconds since 2000-01-01", [0, 4500, 5400], 900, 48),
        (DAILY, [7], 86_400, 3),
    ],
)
def test_the_window_is_half_a_day_or_three_steps(units, values, seconds, window):
    axis = TimeAxis(values=np.array(values), units=units)
    assert axis.step_seconds() == seconds
    assert search_window(axis.step_seconds()) == window


def test_ticks_count_the_steps_that_the_axis_leaves_out():
    axis = TimeAxis(values=np.array([10, 13, 16, 25]), units=DAILY, calendar="noleap")
    assert axis.ticks().tolist() == [0, 1, 2, 5]


def write(path, num_basins, steps, seed=0):
    """Write two targets of two data sets, basins that differ, and return their values [basin, time, target]."""
    generator = np.random.default_rng(seed)
    ids = [[f"a{b}" for b in range(num_basins)], ["b0"]]
    axis = TimeAxis(values=np.arange(steps), units=DAILY)
    times = {"a": axis, "b": axis}
    kept = []
    with PredictionWriter(path, ["a", "b"], ids, ["q", "h"], times) as writer:
        for d, names in enumerate(ids):
            for b in range(len(names)):
                obs, sim = generator.gamma(2.0, 3.0, (2, steps, 2)).astype(np.float32)
                obs[generator.random(obs.shape) < 0.1] = np.nan
                first = 10 * b % steps
                where = np.arange(first, steps)
                same = np.full(len(where), d), np.full(len(where), b)
                writer.add(*same, where, sim[first:], obs[first:])
                sim[:first] = np.nan
                kept.append((obs, sim))
    return ids, times, kept


def test_a_store_gives_each_series_its_own_scores(tmp_path):
    ids, times, kept = write(tmp_path / "p.zarr", 5, 900)
    scores = score_predictions(tmp_path / "p.zarr", ["a", "b"], ids, ["q", "h"], times)
    assert len(scores.note) == 12
    axis = StepAxis(tick=np.arange(900), window=3)
    for k, (obs, sim) in enumerate(kept):
        for v in range(2):
            own = SeriesScores.undefined(1)
            own.fill(0, obs[:, v].astype(np.float64), sim[:, v].astype(np.float64), axis)
            for name in ("fhv", "flv", "peak_timing"):
                assert getattr(scores, name)[2 * k + v] == getattr(own, name)[0], (k, v, name)
    assert np.isfinite(scores.fhv).all()
    assert len(set(scores.fhv.tolist())) == 12


def test_a_basin_without_predictions_has_no_scores_and_no_note(tmp_path):
    axis = TimeAxis(values=np.arange(50), units=DAILY)
    with PredictionWriter(tmp_path / "p.zarr", ["a"], [["1", "2"]], ["q"], {"a": axis}) as writer:
        one = np.ones(40, np.int64)
        writer.add(0 * one, one, np.arange(40), np.ones((40, 1)), np.arange(40.0)[:, None])
    scores = score_predictions(tmp_path / "p.zarr", ["a"], [["1", "2"]], ["q"], {"a": axis})
    assert np.isnan(scores.fhv[0])
    assert scores.note == ["", "floored_low_flows;no_peaks"]
    assert np.isfinite(scores.fhv[1])


def test_memory_does_not_grow_with_the_basins(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "CHUNK_VALUES", 8_000)
    steps, peaks = 4_000, []
    axis = TimeAxis(values=np.arange(steps), units=DAILY)
    flow = np.repeat(np.arange(1.0, 41.0), 100)[:, None]
    for num_basins in (8, 80):
        path, ids = tmp_path / f"{num_basins}.zarr", [[f"{b}" for b in range(num_basins)]]
        with PredictionWriter(path, ["a"], ids, ["q"], {"a": axis}) as writer:
            for b in range(num_basins):
                writer.add(np.zeros(steps, int), np.full(steps, b), np.arange(steps), flow, flow)
        tracemalloc.start()
        scores = score_predictions(path, ["a"], ids, ["q"], {"a": axis})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (scores.fhv == 0).all()
    # 72 more basins are 2.3 MB of float32.
    assert peaks[1] - peaks[0] < 200_000
