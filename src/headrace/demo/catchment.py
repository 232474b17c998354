"""A conceptual catchment: weather in, streamflow out, with parameters that follow from what the land is like.

The structure is HBV's (Bergström 1976, SMHI report RHO 7; Bergström 1992, SMHI report RH 4) without its routing:
degree-day snow, a soil whose recharge grows with its wetness, a quick and a slow linear reservoir.
Parameters are smooth functions of static attributes, so a model that is given the attributes can learn them.

Letters: S basins, T days.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.demo.weather import Weather

Array = NDArray[np.float64]

MELT_TEMPERATURE = 0.0
"""°C: precipitation falls as snow below it, snow melts above it."""
STRESS_SHARE = 0.7
"""Share of the field capacity below which evaporation falls short of the demand (HBV's LP)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What is known of S basins; every field is float64 [S]."""

    area: Array
    """km²."""
    elevation: Array
    """Mean, m above sea level."""
    forest_fraction: Array
    """0 to 1."""
    soil_depth: Array
    """m."""
    permeability: Array
    """Share of recharge that reaches the groundwater, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Parameters of the bucket model; every field is float64 [S]."""

    melt_factor: Array
    """Degree-day factor, mm/°C/day."""
    field_capacity: Array
    """Largest soil moisture, mm."""
    recharge_exponent: Array
    """β in recharge = inflow · (moisture / field capacity)^β."""
    quick_rate: Array
    """Share of the quick reservoir that leaves it in a day."""
    slow_rate: Array
    """Share of the slow reservoir that leaves it in a day."""
    slow_share: Array
    """Share of recharge that goes to the slow reservoir."""


def parameters(attributes: Attributes) -> Parameters:
    """Return the parameters that belong to `attributes`.

    Forest shades the snow and drinks from deeper soil, thick soils hold more water and let little through until they
    are wet, water takes longer out of large basins, and permeable ground feeds the slow reservoir.
    """
    return Parameters(
        melt_factor=4.5 - 2.5 * attributes.forest_fraction,
        field_capacity=150.0 * attributes.soil_depth * (1 + 0.3 * attributes.forest_fraction),
        recharge_exponent=1.0 + 1.5 * attributes.soil_depth,
        quick_rate=np.clip(0.9 - 0.12 * np.log(attributes.area / 10.0), 0.15, 0.9),
        slow_rate=0.01 + 0.03 * (1 - attributes.permeability),
        slow_share=0.1 + 0.6 * attributes.permeability,
    )


def simulate_streamflow(weather: Weather, model: Parameters) -> Array:
    """Run the buckets over the whole record.

    Parameters
    ----------
    weather
        Forcing [S, T]. The stores start half full: leave the first year or two out of what you use.
    model
        Parameters of the S basins.

    Returns
    -------
    numpy.ndarray
        float64 [S, T], mm/day.
    """
    num_basins, num_days = weather.precipitation.shape
    snow = np.zeros(num_basins)
    moisture = 0.5 * model.field_capacity
    quick = np.zeros(num_basins)
    slow = np.full(num_basins, 20.0)
    flow = np.empty((num_basins, num_days))
    for t in range(num_days):
        rain, temperature = weather.precipitation[:, t], weather.temperature[:, t]
        freezing = temperature < MELT_TEMPERATURE
        snow = snow + np.where(freezing, rain, 0.0)
        melt = np.minimum(snow, model.melt_factor * np.maximum(temperature - MELT_TEMPERATURE, 0.0))
        snow = snow - melt
        inflow = np.where(freezing, 0.0, rain) + melt

        recharge = inflow * (moisture / model.field_capacity) ** model.recharge_exponent
        moisture = moisture + inflow - recharge
        overflow = np.maximum(moisture - model.field_capacity, 0.0)
        recharge, moisture = recharge + overflow, moisture - overflow
        supply = np.minimum(moisture / (STRESS_SHARE * model.field_capacity), 1.0)
        moisture = moisture - np.minimum(weather.potential_evaporation[:, t] * supply, moisture)

        quick = quick + (1 - model.slow_share) * recharge
        slow = slow + model.slow_share * recharge
        flow[:, t] = model.quick_rate * quick + model.slow_rate * slow
        quick, slow = (1 - model.quick_rate) * quick, (1 - model.slow_rate) * slow
    return flow


def observe(flow: Array, error: float, rng: np.random.Generator) -> Array:
    """Return `flow` with a multiplicative, log-normal measurement error of relative size `error` and mean 1."""
    sigma = np.sqrt(np.log1p(error**2))
    observed: Array = flow * np.exp(sigma * rng.standard_normal(flow.shape) - 0.5 * sigma**2)
    return observed
