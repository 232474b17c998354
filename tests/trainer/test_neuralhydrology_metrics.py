"""Scores are those of neuralhydrology's metrics module: golden answers, and asked afresh; differences are named."""

import json
import math
import random

import numpy as np
import pytest

from headrace.trainer.peaks import find_peaks
from neuralhydrology_cases import Series, awkward_series, floods, headrace_scores, random_series
from neuralhydrology_environment import SCIPY_VERSION, VERSION, Neuralhydrology
from tree import REPOSITORY

GOLDEN = json.loads((REPOSITORY / "tests" / "golden" / "neuralhydrology_metrics.json").read_text(encoding="utf-8"))
OURS = {
    "NSE": "nse",
    "RMSE": "rmse",
    "KGE": "kge",
    "Pearson-r": "kge_r",
    "Alpha-NSE": "kge_alpha",
    "Beta-KGE": "kge_beta",
    "FHV": "fhv",
    "FLV": "flv",
    "Peak-Timing": "peak_timing",
}
# Where ours is undefined and says why, while neuralhydrology gives a number; docs/evaluation.md tells why.
WITHHELD = {
    "one step": {"FLV"},
    "two steps": {"FLV"},
    "constant observations": {"FLV"},
    "never a flow": {"FLV"},
    "constant low flows": {"FLV"},
}
NOTES = {
    "perfect": set(),
    "zero flows": {"floored_low_flows"},
    "equal heights and flat tops": {"floored_low_flows"},
    "a flood on either edge": set(),
    "floods at the edges of a gap": set(),
    "every fourth step missing": {"no_peaks"},
    "no flood": {"no_peaks"},
    "around zero": {"negative_low_flows"},
    "25 steps": {"too_few_high_flows"},
    "26 steps": set(),
    "two steps": {"too_few_high_flows", "constant_low_flows", "no_peaks"},
    "one step": {
        "constant_observations",
        "constant_simulation",
        "too_few_high_flows",
        "too_few_low_flows",
        "no_peaks",
    },
    "constant observations": {"constant_observations", "constant_low_flows", "no_peaks"},
    "constant simulation": {"constant_simulation"},
    "never a flow": {
        "constant_observations",
        "zero_mean_observations",
        "zero_high_flows",
        "constant_low_flows",
        "no_peaks",
    },
    "constant low flows": {"constant_low_flows"},
    "no observation": {"no_observations"},
}


def epsilon_of_flv(series: Series) -> float:
    """Return the share by which the 1e-6 in neuralhydrology's denominator makes its FLV smaller."""
    pairs = zip(series.obs, series.sim, strict=True)
    obs = np.array([o for o, s in pairs if o is not None and s is not None])
    low = np.log(np.maximum(np.sort(obs)[: int(np.round(0.3 * len(obs)))], 1e-6))
    return 1e-6 / (low - low.min()).sum()


def check(series, theirs, withheld=frozenset()):
    ours, notes = headrace_scores(series)
    for name, own in OURS.items():
        expected = theirs[name]
        if name in withheld:
            assert expected is not None
            assert math.isnan(ours[own])
            assert notes
        elif expected is None:
            assert math.isnan(ours[own]), name
            assert notes, name
        else:
            tolerance = 1e-9 + (epsilon_of_flv(series) if name == "FLV" else 0.0)
            assert ours[own] == pytest.approx(expected, rel=tolerance, abs=1e-9), name
    if theirs["Beta-NSE"] is not None:
        pairs = zip(series.obs, series.sim, strict=True)
        std = np.std([o for o, s in pairs if o is not None and s is not None])
        assert ours["bias"] / std == pytest.approx(theirs["Beta-NSE"], rel=1e-9, abs=1e-12)
    return notes


@pytest.mark.parametrize("seed", GOLDEN["random"])
def test_random_series_score_as_in_the_golden_answers(seed):
    assert GOLDEN["provenance"]["neuralhydrology"] == VERSION
    check(random_series(int(seed)), GOLDEN["random"][seed])


@pytest.mark.parametrize("name", [name for name in awkward_series() if name != "no observation"])
def test_awkward_series_score_as_in_the_golden_answers_or_say_why_not(name):
    series = awkward_series()[name]
    assert check(series, GOLDEN["awkward"][name], WITHHELD.get(name, frozenset())) == NOTES[name]


def test_no_observation_is_refused_there_and_named_here():
    ours, notes = headrace_scores(awkward_series()["no observation"])
    assert "All observed values are NaN" in GOLDEN["awkward"]["no observation"]
    assert all(math.isnan(value) for value in ours.values())
    assert notes == NOTES["no observation"]


def test_the_golden_answers_ask_what_matters():
    answers = list(GOLDEN["random"].values())
    timing = [answer["Peak-Timing"] for answer in answers]
    assert len(set(timing)) > len(timing) / 3
    series = [random_series(int(seed)) for seed in GOLDEN["random"]]
    assert {one.resolution for one in series} == {"1D", "1h", "15min"}
    assert {bool(one.skipped) for one in series} == {True, False}
    assert any(None in one.obs for one in series)
    assert any(None in one.sim for one in series)
    assert set(GOLDEN["awkward"]) == set(awkward_series()) == set(NOTES)


@pytest.mark.slow
@pytest.mark.network
def test_random_series_score_as_neuralhydrology_says_today():
    with Neuralhydrology() as neuralhydrology:
        for seed in range(1000, 1150):
            series = random_series(seed)
            check(series, neuralhydrology.ask("metrics", **series.question()))
        for name, series in awkward_series().items():
            if name != "no observation":
                assert neuralhydrology.ask("metrics", **series.question()) == GOLDEN["awkward"][name], name


@pytest.mark.slow
@pytest.mark.network
def test_peaks_are_those_scipy_finds():
    draw = random.Random(3)
    with Neuralhydrology() as neuralhydrology:
        for seed in range(400):
            values = floods(seed, draw.randrange(1, 600))
            if seed % 2:
                # Short and coarse: flat tops and equal heights, few enough for SciPy's sort to keep their order.
                values = [float(round(value / 2)) for value in values[:40]]
            distance, prominence = draw.randrange(1, 120), draw.choice([0.0, 0.5, 5.0])
            theirs = neuralhydrology.ask("peaks", values=values, distance=distance, prominence=prominence)
            ours = find_peaks(np.array(values), distance, prominence).tolist()
            assert ours == theirs, (SCIPY_VERSION, seed)
