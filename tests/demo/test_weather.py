"""The weather generator draws what its parameters ask for."""

from dataclasses import replace

import numpy as np
import pytest

from headrace.demo.weather import (
    AMOUNT_SHAPE,
    WETNESS_MEMORY,
    Climate,
    Weather,
    autoregressive,
    day_of_year,
    extraterrestrial_radiation,
    potential_evaporation,
    simulate_weather,
    wet_days,
)

DAYS = np.arange(np.datetime64("1960-01-01"), np.datetime64("2020-01-01"))


@pytest.fixture
def climate() -> Climate:
    two = np.ones(2)
    return Climate(
        wet_share=np.array([0.3, 0.5]),
        wet_season=np.array([0.0, 0.2]),
        wettest_day=200 * two,
        rain_amount=np.array([5.0, 10.0]),
        temperature=np.array([5.0, 15.0]),
        temperature_season=8 * two,
        temperature_anomaly=3 * two,
        latitude=50 * two,
    )


@pytest.fixture
def weather(climate: Climate) -> Weather:
    return simulate_weather(climate, DAYS, np.random.default_rng(1))


def test_share_and_memory_of_wet_days_are_those_of_the_climate(climate: Climate) -> None:
    wet = wet_days(climate, day_of_year(DAYS), np.random.default_rng(1))
    np.testing.assert_allclose(wet.mean(axis=1), climate.wet_share, atol=0.02)
    steady = wet[0].astype(float)
    assert np.corrcoef(steady[1:], steady[:-1])[0, 1] == pytest.approx(WETNESS_MEMORY, abs=0.03)


def test_wet_season_lies_around_the_wettest_day(climate: Climate) -> None:
    day = day_of_year(DAYS)
    wet = wet_days(climate, day, np.random.default_rng(1))[1]
    assert wet[np.abs(day - 200) < 15].mean() == pytest.approx(0.7, abs=0.04)
    assert wet[np.abs(day - 17) < 15].mean() == pytest.approx(0.3, abs=0.04)


def test_amounts_have_the_mean_of_the_climate_and_the_spread_of_the_gamma(climate: Climate, weather: Weather) -> None:
    for rain, mean in zip(weather.precipitation, climate.rain_amount, strict=True):
        amounts = rain[rain > 0]
        assert amounts.mean() == pytest.approx(mean, rel=0.05)
        assert amounts.std() == pytest.approx(mean / np.sqrt(AMOUNT_SHAPE), rel=0.08)


def test_temperature_follows_the_year_and_the_climate(climate: Climate, weather: Weather) -> None:
    day = day_of_year(DAYS)
    summer = weather.temperature[:, np.abs(day - 201) < 20].mean(axis=1)
    winter = weather.temperature[:, np.abs(day - 18) < 18].mean(axis=1)
    np.testing.assert_allclose((summer + winter) / 2, climate.temperature, atol=1.2)
    assert np.all(summer - winter > 13)


def test_anomalies_have_unit_spread_and_their_memory() -> None:
    series = autoregressive((3, 20_000), 0.8, np.random.default_rng(2))
    assert series.std() == pytest.approx(1, abs=0.03)
    assert np.corrcoef(series[0, 1:], series[0, :-1])[0, 1] == pytest.approx(0.8, abs=0.02)


def test_radiation_equals_the_worked_example_of_fao_56() -> None:
    # Example 8: 20° south on 3 September (day 246) is 32.2 MJ/m²/day.
    radiation = extraterrestrial_radiation(np.array([-20.0]), np.array([246.0]))
    assert radiation[0, 0] == pytest.approx(32.2, abs=0.05)


def test_evaporative_demand_stops_in_the_cold_and_follows_oudin() -> None:
    day = np.array([246.0, 246.0, 246.0])
    demand = potential_evaporation(np.array([[-8.0, -5.0, 20.0]]), np.array([-20.0]), day)
    assert demand[0, :2].tolist() == [0, 0]
    assert demand[0, 2] == pytest.approx(32.2 / 2.45 * 25 / 100, rel=0.01)


def test_day_of_year_counts_leap_days() -> None:
    days = np.array(["1999-01-01", "2000-02-29", "2000-12-31", "2001-12-31"], dtype="datetime64[D]")
    assert day_of_year(days).tolist() == [1, 60, 366, 365]


def test_same_generator_state_gives_the_same_weather(climate: Climate, weather: Weather) -> None:
    again = simulate_weather(climate, DAYS, np.random.default_rng(1))
    np.testing.assert_array_equal(again.precipitation, weather.precipitation)
    np.testing.assert_array_equal(again.temperature, weather.temperature)


def test_impossible_climates_are_refused(climate: Climate) -> None:
    with pytest.raises(ValueError, match="must stay inside"):
        replace(climate, wet_season=np.array([0.0, 0.6]))
    with pytest.raises(ValueError, match="one length"):
        replace(climate, latitude=np.array([50.0]))
