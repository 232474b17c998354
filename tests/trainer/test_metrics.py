"""Streamed scores equal the published formulas on whole series."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.trainer.metrics import METRIC_COLUMNS, StreamingMetrics, format_row, median
from headrace.trainer.pair_moments import PairMoments
from headrace.trainer.scores import compute_scores
from headrace.trainer.series_scores import SeriesScores


def reference(obs, sim):
    seen = ~np.isnan(obs)
    o, s = obs[seen], sim[seen]
    r = np.mean((o - o.mean()) * (s - s.mean())) / (o.std() * s.std())
    alpha, beta = s.std() / o.std(), s.mean() / o.mean()
    return {
        "count": seen.sum(),
        "nse": 1 - np.sum((s - o) ** 2) / np.sum((o - o.mean()) ** 2),
        "kge": 1 - np.sqrt((r - 1) ** 2 + (alpha - 1) ** 2 + (beta - 1) ** 2),
        "kge_r": r,
        "kge_alpha": alpha,
        "kge_beta": beta,
        "rmse": np.sqrt(np.mean((s - o) ** 2)),
        "bias": s.mean() - o.mean(),
        "pbias": 100 * np.sum(s - o) / np.sum(o),
    }


def make_series(seed, num_basins, steps, targets, offset):
    generator = np.random.default_rng(seed)
    obs = generator.gamma(2.0, 3.0, (num_basins, steps, targets)) + offset
    sim = 0.7 * obs + generator.normal(0.5, 1.0, obs.shape)
    obs[generator.random(obs.shape) < 0.2] = np.nan
    return obs, sim


def stream(obs, sim, batch_size, seed):
    """Feed all steps in random order and random batches; two data sets of unequal size."""
    num_basins, steps, targets = obs.shape
    split = max(1, num_basins // 3)
    ids = [[f"a{b}" for b in range(split)], [f"b{b}" for b in range(num_basins - split)]]
    metrics = StreamingMetrics(["a", "b"], ids, [f"y{v}" for v in range(targets)])
    order = np.random.default_rng(seed).permutation(num_basins * steps)
    for first in range(0, len(order), batch_size):
        basin, step = np.divmod(order[first : first + batch_size], steps)
        dataset = (basin >= split).astype(np.int32)
        within = (basin - split * dataset).astype(np.int32)
        metrics.update(dataset, within, obs[basin, step], sim[basin, step])
    return metrics, split


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_basins=st.integers(2, 7),
    steps=st.integers(12, 60),
    targets=st.integers(1, 2),
    batch_size=st.integers(1, 200),
    offset=st.sampled_from([0.0, 1e4]),
)
def test_streamed_scores_equal_the_formulas_for_any_order_and_batch_size(
    seed, num_basins, steps, targets, batch_size, offset
):
    obs, sim = make_series(seed, num_basins, steps, targets, offset)
    metrics, split = stream(obs, sim, batch_size, seed)
    rows = {(r.scope, r.dataset_id, r.basin_id, r.target): r for r in metrics.rows()}
    expected = {}
    for b in range(num_basins):
        name, ident = ("a", f"a{b}") if b < split else ("b", f"b{b - split}")
        for v in range(targets):
            expected[name, ident, v] = reference(obs[b, :, v], sim[b, :, v])
            for score, value in expected[name, ident, v].items():
                got = getattr(rows["basin", name, ident, f"y{v}"], score)
                assert got == pytest.approx(value, rel=1e-7, abs=1e-9), score
    for v in range(targets):
        for scope, name, members in (
            ("dataset", "a", slice(0, split)),
            ("dataset", "b", slice(split, None)),
            ("all", "", slice(None)),
        ):
            row = rows[scope, name, "", f"y{v}"]
            pooled = reference(obs[members, :, v].ravel(), sim[members, :, v].ravel())
            inside = [e for (d, _, w), e in expected.items() if w == v and name in ("", d)]
            assert row.nse_pooled == pytest.approx(pooled["nse"], rel=1e-7)
            assert row.count == pooled["count"]
            assert row.kge == pytest.approx(np.median([e["kge"] for e in inside]), rel=1e-7)
            assert row.note == ""


def scores_of(obs, sim):
    moments = PairMoments.empty(1)
    moments.add(np.zeros(len(obs), np.int64), np.array(obs, float), np.array(sim, float))
    return compute_scores(moments)


def test_no_observation_leaves_every_score_undefined_and_says_so():
    scores = scores_of([np.nan, np.nan], [1.0, 2.0])
    assert scores.note == ["no_observations"]
    assert scores.count[0] == 0
    for name in ("nse", "kge", "kge_r", "kge_alpha", "kge_beta", "rmse", "bias", "pbias"):
        assert np.isnan(getattr(scores, name)[0])


def test_constant_observations_leave_nse_and_kge_undefined_but_not_rmse():
    scores = scores_of([0.1] * 7, [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.2])
    assert scores.note == ["constant_observations"]
    assert np.isnan([scores.nse[0], scores.kge[0], scores.kge_r[0], scores.kge_alpha[0]]).all()
    assert scores.rmse[0] == pytest.approx(np.sqrt(np.mean(np.square([0, 0.1, 0.2, 0, 0.1, 0.2, 0.1]))))
    assert scores.kge_beta[0] == pytest.approx(2.0)


def test_a_constant_simulation_has_alpha_zero_and_no_correlation():
    scores = scores_of([1.0, 2.0, 3.0], [0.1, 0.1, 0.1])
    assert scores.note == ["constant_simulation"]
    assert scores.kge_alpha[0] == 0.0
    assert np.isnan([scores.kge[0], scores.kge_r[0]]).all()
    assert np.isfinite(scores.nse[0])


def test_observations_around_zero_leave_the_relative_bias_undefined():
    scores = scores_of([-1.0, 1.0, -2.0, 2.0], [0.0, 1.0, -2.0, 3.0])
    assert scores.note == ["zero_mean_observations"]
    assert np.isnan([scores.pbias[0], scores.kge_beta[0], scores.kge[0]]).all()
    assert scores.bias[0] == pytest.approx(0.5)


def test_a_dry_basin_names_both_reasons():
    assert scores_of([0.0] * 4, [0.0, 0.5, 0.5, 0.0]).note == ["constant_observations;zero_mean_observations"]


def test_a_data_set_counts_why_basins_are_undefined():
    metrics = StreamingMetrics(["a"], [["1", "2", "3", "4"]], ["q"])
    basin = np.array([0, 0, 1, 1, 2, 2])
    obs = np.array([1.0, 2.0, 5.0, 5.0, np.nan, np.nan])[:, None]
    metrics.update(np.zeros(6, int), basin, obs, np.array([1.0, 2.5, 5.0, 6.0, 1.0, 2.0])[:, None])
    summary = next(row for row in metrics.rows() if row.scope == "dataset")
    assert summary.note == "constant_observations: 1; no_observations: 2"
    assert summary.nse == pytest.approx(0.5)


def test_scores_of_whole_series_join_the_table_with_their_medians_and_reasons():
    metrics = StreamingMetrics(["a", "b"], [["1", "2", "3"], ["4"]], ["q"])
    basin = np.array([0, 0, 1, 1, 2, 2])
    values = np.array([1.0, 2.0, 3.0, 3.0, 5.0, 7.0])[:, None]
    metrics.update(np.zeros(6, int), basin, values, values)
    series = SeriesScores(
        fhv=np.array([1.0, 5.0, np.nan, np.nan]),
        flv=np.array([-2.0, np.nan, np.nan, np.nan]),
        peak_timing=np.array([0.0, 1.0, 2.0, np.nan]),
        note=["", "constant_low_flows", "too_few_high_flows;constant_low_flows", ""],
    )
    rows = {(row.scope, row.dataset_id, row.basin_id): row for row in metrics.rows(series)}
    assert rows["basin", "a", "2"].note == "constant_observations;constant_simulation;constant_low_flows"
    assert [rows["basin", "a", name].fhv for name in "12"] == [1.0, 5.0]
    summary = rows["dataset", "a", ""]
    assert (summary.fhv, summary.flv, summary.peak_timing) == (3.0, -2.0, 1.0)
    assert "too_few_high_flows: 1" in summary.note
    assert "constant_low_flows: 2" in summary.note
    assert rows["basin", "b", "4"].note == "no_observations"
    only = metrics.rows(series, np.array([False, True, False, True]))
    assert [row.fhv for row in only if row.scope == "all"] == [5.0]


def test_undefined_is_an_empty_cell():
    metrics = StreamingMetrics(["a"], [["1"]], ["q"])
    cells = dict(zip(METRIC_COLUMNS, format_row(metrics.rows()[0]), strict=True))
    assert cells["nse"] == ""
    assert cells["note"] == "no_observations"
    assert cells["count"] == "0"


def test_median_ignores_what_is_undefined():
    assert median(np.array([np.nan, 1.0, 3.0])) == 2.0
    assert np.isnan(median(np.array([np.nan])))
