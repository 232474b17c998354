"""Stochastic daily weather for many basins at once: rain in spells, temperature with memory, evaporative demand.

A climate and a list of days go in, arrays `[S, T]` come out. The generator follows Richardson (1981,
https://doi.org/10.1029/WR017i001p00182): a two-state Markov chain decides which days are wet, the amounts are gamma
distributed, and temperature is a yearly wave plus an autoregressive anomaly.

Letters: S basins, T days.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DAYS_PER_YEAR = 365.25
WARMEST_DAY = 201.0
"""Day of the year on which the temperature wave has its crest (20 July: the demo lies in the northern half)."""
WETNESS_MEMORY = 0.35
"""Lag-1 autocorrelation of wet days: spells of rain and dry spells instead of single days."""
AMOUNT_SHAPE = 0.75
"""Shape of the gamma distribution of wet-day amounts: many small ones, few large ones."""
ANOMALY_MEMORY = 0.8
"""Lag-1 autocorrelation of the temperature anomaly."""
WET_DAY_COOLING = 1.5
"""Degrees by which a wet day is cooler than a dry one."""
LATENT_HEAT = 2.45
"""Latent heat of vaporisation, MJ/kg, which is MJ/m² per mm of water."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Climate:
    """Climate of S basins; every field is float64 [S]."""

    wet_share: Array
    """Yearly mean share of wet days."""
    wet_season: Array
    """Amplitude of the wet share over the year."""
    wettest_day: Array
    """Day of the year with most rain days."""
    rain_amount: Array
    """Mean precipitation of a wet day, mm."""
    temperature: Array
    """Yearly mean air temperature, °C."""
    temperature_season: Array
    """Amplitude of the yearly temperature wave, °C."""
    temperature_anomaly: Array
    """Standard deviation of the daily temperature anomaly, °C."""
    latitude: Array
    """Latitude, degrees north."""

    def __post_init__(self) -> None:
        """Refuse climates that are no climates."""
        shapes = {getattr(self, field.name).shape for field in fields(self)}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise ValueError(f"every climate parameter must be an array [S] of one length, got shapes {shapes}")
        low, high = self.wet_share - self.wet_season, self.wet_share + self.wet_season
        if low.min() <= 0 or high.max() >= 1:
            raise ValueError(f"wet_share ± wet_season must stay inside (0, 1), got {low.min()} … {high.max()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Daily weather; every field is float64 [S, T]."""

    precipitation: Array
    """mm/day."""
    temperature: Array
    """Daily mean, °C."""
    potential_evaporation: Array
    """mm/day."""


def simulate_weather(climate: Climate, days: NDArray[np.datetime64], rng: np.random.Generator) -> Weather:
    """Draw weather.

    Parameters
    ----------
    climate
        Parameters of S basins.
    days
        datetime64[D] [T], consecutive days.
    rng
        Source of all randomness.

    Returns
    -------
    Weather
        Basins are drawn independently of each other.
    """
    day = day_of_year(days)
    wet = wet_days(climate, day, rng)
    amount = rng.gamma(AMOUNT_SHAPE, climate.rain_amount[:, None] / AMOUNT_SHAPE, size=wet.shape)
    season = np.cos(2 * np.pi * (day - WARMEST_DAY) / DAYS_PER_YEAR)
    temperature = (
        climate.temperature[:, None]
        + climate.temperature_season[:, None] * season
        + climate.temperature_anomaly[:, None] * autoregressive(wet.shape, ANOMALY_MEMORY, rng)
        - WET_DAY_COOLING * wet
    )
    return Weather(
        precipitation=np.where(wet, amount, 0.0),
        temperature=temperature,
        potential_evaporation=potential_evaporation(temperature, climate.latitude, day),
    )


def day_of_year(days: NDArray[np.datetime64]) -> Array:
    """Return float64 [T]: 1 on the first of January."""
    first = days.astype("datetime64[Y]").astype("datetime64[D]")
    day: Array = (days - first).astype(np.float64) + 1.0
    return day


def wet_days(climate: Climate, day: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw which days are wet: bool [S, T].

    With a share π of wet days on this day of the year and a memory r, the chain stays wet with probability
    π + r(1 − π) and becomes wet with π(1 − r): its long-run share is π and its lag-1 autocorrelation r.
    """
    phase = 2 * np.pi * (day - climate.wettest_day[:, None]) / DAYS_PER_YEAR
    share = climate.wet_share[:, None] + climate.wet_season[:, None] * np.cos(phase)
    draw = rng.random(share.shape)
    wet = np.empty(share.shape, dtype=bool)
    state = draw[:, 0] < share[:, 0]
    for t in range(share.shape[1]):
        state = draw[:, t] < share[:, t] * (1 - WETNESS_MEMORY) + WETNESS_MEMORY * state
        wet[:, t] = state
    return wet


def autoregressive(shape: tuple[int, ...], memory: float, rng: np.random.Generator) -> Array:
    """Draw first-order autoregressive series with mean 0 and standard deviation 1: float64 [S, T]."""
    noise = rng.standard_normal(shape)
    series = np.empty(shape)
    series[:, 0] = noise[:, 0]
    innovation = np.sqrt(1 - memory**2)
    for t in range(1, shape[1]):
        series[:, t] = memory * series[:, t - 1] + innovation * noise[:, t]
    return series


def potential_evaporation(temperature: Array, latitude: Array, day: Array) -> Array:
    """Return potential evapotranspiration, mm/day, float64 [S, T].

    Oudin et al. (2005, https://doi.org/10.1016/j.jhydrol.2004.08.026): PE = Re / (λρ) · (T + 5) / 100 where T > −5 °C,
    else 0, with the extraterrestrial radiation Re.
    """
    radiation = extraterrestrial_radiation(latitude, day)
    demand: Array = radiation / LATENT_HEAT * np.maximum(temperature + 5.0, 0.0) / 100.0
    return demand


def extraterrestrial_radiation(latitude: Array, day: Array) -> Array:
    """Return radiation on a horizontal plane outside the atmosphere, MJ/m²/day, float64 [S, T].

    FAO Irrigation and Drainage Paper 56 (Allen et al. 1998), equations 21 to 25; latitudes between the polar circles.
    """
    angle = 2 * np.pi * day / 365.0
    distance = 1 + 0.033 * np.cos(angle)
    declination = 0.409 * np.sin(angle - 1.39)
    phi = np.deg2rad(latitude)[:, None]
    sunset = np.arccos(-np.tan(phi) * np.tan(declination))
    height = sunset * np.sin(phi) * np.sin(declination) + np.cos(phi) * np.cos(declination) * np.sin(sunset)
    radiation: Array = 24 * 60 / np.pi * 0.0820 * distance * height
    return radiation
