"""Two invented landscapes: who the basins are, and years of what their gauges would have seen.

`alpine` is high, wet and has snow; `lowland` is mild, drier and slow. Everything follows from one seed.

Letters: S basins, T days.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.demo.catchment import Attributes, observe, parameters, simulate_streamflow
from headrace.demo.weather import Climate, Weather, simulate_weather

Array = NDArray[np.float64]
Span = tuple[float, float]

SPIN_UP_DAYS = 730
"""Days simulated before the record, in which the stores forget how they began."""
FLOW_ERROR = 0.04
"""Relative error of a streamflow measurement."""
LAPSE_RATE = 0.0055
"""°C by which it gets colder per metre."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """What a landscape's basins are drawn from: uniform spans, the area on a log scale."""

    stream: int
    """Number of the landscape's own random stream."""
    num_basins: int
    first_day: str
    last_day: str
    """First and last day of the record, inclusive."""
    area: Span
    elevation: Span
    forest_fraction: Span
    soil_depth: Span
    permeability: Span
    wet_share: Span
    wet_season: Span
    wettest_day: Span
    rain_amount: Span
    sea_level_temperature: float
    """°C, yearly mean; the basins' own follows from their elevation."""
    temperature_season: Span
    temperature_anomaly: Span
    latitude: Span
    longitude: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What was seen in a landscape, complete: the stores put the gaps in."""

    days: NDArray[np.datetime64]
    """datetime64[D] [T]."""
    attributes: Attributes
    weather: Weather
    """[S, T]."""
    streamflow: Array
    """float64 [S, T], mm/day."""
    latitude: Array
    longitude: Array
    """float64 [S], degrees north and east: no input of the model, but where a map puts the gauges."""


ALPINE = Region(
    stream=0,
    num_basins=12,
    first_day="1985-10-01",
    last_day="1997-09-30",
    area=(20.0, 1500.0),
    elevation=(500.0, 1700.0),
    forest_fraction=(0.1, 0.9),
    soil_depth=(0.3, 1.0),
    permeability=(0.05, 0.6),
    wet_share=(0.35, 0.5),
    wet_season=(0.0, 0.08),
    wettest_day=(150.0, 240.0),
    rain_amount=(8.0, 13.0),
    sea_level_temperature=12.5,
    temperature_season=(7.5, 9.5),
    temperature_anomaly=(3.0, 4.0),
    latitude=(45.0, 48.0),
    longitude=(6.0, 14.0),
)

LOWLAND = Region(
    stream=1,
    num_basins=10,
    first_day="1990-01-01",
    last_day="1999-12-31",
    area=(30.0, 3000.0),
    elevation=(20.0, 300.0),
    forest_fraction=(0.0, 0.6),
    soil_depth=(0.5, 1.4),
    permeability=(0.1, 0.7),
    wet_share=(0.3, 0.45),
    wet_season=(0.0, 0.06),
    wettest_day=(0.0, 365.0),
    rain_amount=(6.0, 9.0),
    sea_level_temperature=11.5,
    temperature_season=(6.0, 8.0),
    temperature_anomaly=(2.5, 3.5),
    latitude=(50.0, 54.0),
    longitude=(5.0, 13.0),
)


def simulate(region: Region, seed: int) -> Record:
    """Draw a landscape's basins and simulate their record.

    Parameters
    ----------
    region
        The landscape.
    seed
        The same seed gives the same record, and each landscape has a random stream of its own.
    """
    rng = np.random.default_rng([seed, region.stream])
    attributes = _attributes(region, rng)
    climate = _climate(region, attributes.elevation, rng)
    first, last = np.datetime64(region.first_day, "D"), np.datetime64(region.last_day, "D")
    days = np.arange(first - SPIN_UP_DAYS, last + 1)
    weather = simulate_weather(climate, days, rng)
    flow = observe(simulate_streamflow(weather, parameters(attributes)), FLOW_ERROR, rng)
    return Record(
        days=days[SPIN_UP_DAYS:],
        attributes=attributes,
        weather=Weather(
            precipitation=weather.precipitation[:, SPIN_UP_DAYS:],
            temperature=weather.temperature[:, SPIN_UP_DAYS:],
            potential_evaporation=weather.potential_evaporation[:, SPIN_UP_DAYS:],
        ),
        streamflow=flow[:, SPIN_UP_DAYS:],
        latitude=climate.latitude,
        longitude=rng.uniform(*region.longitude, region.num_basins),
    )


def _attributes(region: Region, rng: np.random.Generator) -> Attributes:
    num = region.num_basins
    return Attributes(
        area=np.exp(rng.uniform(np.log(region.area[0]), np.log(region.area[1]), num)),
        elevation=rng.uniform(*region.elevation, num),
        forest_fraction=rng.uniform(*region.forest_fraction, num),
        soil_depth=rng.uniform(*region.soil_depth, num),
        permeability=rng.uniform(*region.permeability, num),
    )


def _climate(region: Region, elevation: Array, rng: np.random.Generator) -> Climate:
    num = region.num_basins
    return Climate(
        wet_share=rng.uniform(*region.wet_share, num),
        wet_season=rng.uniform(*region.wet_season, num),
        wettest_day=rng.uniform(*region.wettest_day, num),
        rain_amount=rng.uniform(*region.rain_amount, num),
        temperature=region.sea_level_temperature - LAPSE_RATE * elevation,
        temperature_season=rng.uniform(*region.temperature_season, num),
        temperature_anomaly=rng.uniform(*region.temperature_anomaly, num),
        latitude=rng.uniform(*region.latitude, num),
    )
