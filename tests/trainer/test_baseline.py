"""Climatology against a slow loop."""

import numpy as np
import pytest

from headrace.trainer.baseline import climatology


def slow(obs, days, wanted, half):
    near = [(int(d) - wanted) % 366 for d in days]
    inside = [o for o, n in zip(obs, near, strict=True) if min(n, 366 - n) <= half and not np.isnan(o)]
    return np.mean(inside) if inside else np.nanmean(obs)


@pytest.mark.parametrize("half", [0, 3, 10])
def test_climatology_equals_a_slow_loop_around_the_turn_of_the_year(half):
    generator = np.random.default_rng(0)
    days = np.arange(900) % 365 + 1
    obs = generator.gamma(2.0, 1.0, 900)
    obs[generator.random(900) < 0.3] = np.nan
    wanted = np.array([1, 2, 180, 363, 365, 366])
    expected = [slow(obs, days, d, half) for d in wanted]
    np.testing.assert_allclose(climatology(obs, days, wanted, half), expected, rtol=1e-12)


def test_a_window_wider_than_the_year_is_the_mean_of_all():
    obs = np.array([1.0, 2.0, 6.0])
    assert climatology(obs, np.array([1, 100, 300]), np.array([200]), half_window=500)[0] == pytest.approx(3.0)


def test_nothing_observed_predicts_nothing():
    assert np.isnan(climatology(np.full(3, np.nan), np.array([1, 2, 3]), np.array([1, 2]))).all()


def test_days_outside_the_year_are_refused():
    with pytest.raises(ValueError, match="day_of_year_test must lie in 1 to 366, got 0 to 1"):
        climatology(np.ones(2), np.array([1, 2]), np.array([0, 1]))
