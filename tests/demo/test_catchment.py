"""The bucket model keeps its water and answers to its attributes."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.demo.catchment import Attributes, observe, parameters, simulate_streamflow
from headrace.demo.weather import Weather


def steady(values: list[float]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


@pytest.fixture
def attributes() -> Attributes:
    return Attributes(
        area=steady([20, 2000]),
        elevation=steady([500, 500]),
        forest_fraction=steady([0.5, 0.5]),
        soil_depth=steady([0.5, 0.5]),
        permeability=steady([0.3, 0.3]),
    )


def storm(days: int, amount: float, temperature: float, rainy: int = 1, demand: float = 0.0) -> Weather:
    rain = np.zeros((2, days))
    rain[:, :rainy] = amount
    return Weather(
        precipitation=rain,
        temperature=np.full((2, days), temperature),
        potential_evaporation=np.full((2, days), demand),
    )


def test_water_that_comes_in_goes_out_when_nothing_evaporates(attributes: Attributes) -> None:
    model = parameters(attributes)
    flow = simulate_streamflow(storm(5000, 500.0, 10.0, rainy=5), model)
    # The soil began half full and ends full, the slow reservoir began with 20 mm.
    np.testing.assert_allclose(flow.sum(axis=1), 2500 + 20 - 0.5 * model.field_capacity, rtol=1e-9)


def test_evaporation_takes_water_from_the_river(attributes: Attributes) -> None:
    model = parameters(attributes)
    wet = simulate_streamflow(storm(400, 10.0, 10.0, rainy=400), model)
    dry = simulate_streamflow(storm(400, 10.0, 10.0, rainy=400, demand=3.0), model)
    np.testing.assert_allclose((wet - dry)[:, -1], 3.0, rtol=0.05)


def test_snow_waits_until_it_thaws(attributes: Attributes) -> None:
    weather = storm(200, 20.0, -5.0, rainy=10)
    weather.temperature[:, 100:] = 5.0
    flow = simulate_streamflow(weather, parameters(attributes))
    assert np.all(np.diff(flow[:, :100], axis=1) < 0), "only the slow reservoir runs while it freezes"
    assert np.all(flow[:, 100:105].max(axis=1) > 5 * flow[:, 99])


def test_small_basins_rise_higher_and_fall_faster(attributes: Attributes) -> None:
    small, large = simulate_streamflow(storm(60, 100.0, 10.0), parameters(attributes))
    assert small[0] > 1.5 * large[0]
    assert small[5] < large[5]


@pytest.mark.parametrize("name", ["area", "forest_fraction", "soil_depth", "permeability"])
def test_each_attribute_changes_the_flow(attributes: Attributes, name: str) -> None:
    weather = storm(300, 30.0, 8.0, rainy=40, demand=2.0)
    weather.temperature[:, :10] = -3.0
    before = simulate_streamflow(weather, parameters(attributes))
    changed = replace(attributes, **{name: getattr(attributes, name) * 1.5})
    after = simulate_streamflow(weather, parameters(changed))
    assert np.abs(after - before).max() > 0.1


def test_flow_is_never_negative_and_finite(attributes: Attributes) -> None:
    rng = np.random.default_rng(3)
    shape = (2, 3000)
    weather = Weather(
        precipitation=rng.gamma(0.2, 20, shape),
        temperature=rng.normal(3, 8, shape),
        potential_evaporation=rng.uniform(0, 8, shape),
    )
    flow = simulate_streamflow(weather, parameters(attributes))
    assert np.isfinite(flow).all()
    assert flow.min() >= 0


def test_measurement_error_is_relative_and_without_bias() -> None:
    flow = np.full((2, 50_000), 3.0)
    seen = observe(flow, 0.05, np.random.default_rng(4))
    assert seen.mean() == pytest.approx(3.0, rel=1e-3)
    assert seen.std() == pytest.approx(0.15, rel=0.03)
    assert seen.min() > 0
