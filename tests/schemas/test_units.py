"""Unit spellings, and the factors between volume and depth rates."""

import pytest

from headrace.schemas.errors import ConfigError
from headrace.schemas.units import per_area_factor, same_unit, tidy

SPELLINGS = {
    "m3/s": [
        "m3/s",
        "m^3/s",
        "m³/s",
        "m**3/s",
        "m3 s-1",
        "m^3 s^-1",
        "m³ s⁻¹",
        "m3·s-1",
        "cms",
        "CMS",
        "cumecs",
        " m3/s ",
    ],
    "mm/day": ["mm/day", "mm/d", "mm d-1", "mm day-1", "mm d⁻¹", "MM/DAY"],
    "ft3/s": ["cfs", "ft3/s", "ft³/s", "cubic feet per second", "cubic_feet_per_second"],
    "km2": ["km2", "km^2", "km²", "km**2", "sq km"],
    "l/s": ["L/s", "l s-1", "L s⁻¹"],
    "ml/day": ["ML/day", "ML/d"],
    "degC": ["degC", "°C", "C", "Celsius"],
    "K": ["K", "kelvin"],
    "mm/h": ["mm/h", "mm/hr", "mm/hour", "mm h-1"],
}


@pytest.mark.parametrize(("unit", "text"), [(unit, text) for unit, texts in SPELLINGS.items() for text in texts])
def test_spellings_of_a_unit_become_one(unit: str, text: str) -> None:
    assert tidy(text) == unit
    assert tidy(tidy(text)) == unit
    assert same_unit(text, unit)


def test_different_units_stay_different() -> None:
    assert len({tidy(unit) for unit in SPELLINGS}) == len(SPELLINGS)
    assert not same_unit("mm/day", "mm/h")
    assert tidy("W/m2") == tidy("W / m²")


@pytest.mark.parametrize(
    ("flow", "area", "depth", "expected"),
    [
        ("m3/s", "km2", "mm/day", 86.4),
        ("cms", "km^2", "mm d-1", 86.4),
        ("m3/s", "km2", "mm/h", 3.6),
        ("m3/s", "m2", "m/s", 1.0),
        ("m3/s", "ha", "mm/day", 8640.0),
        ("cfs", "mi2", "mm/day", 0.3048**3 / 1609.344**2 * 86_400_000),
        ("L/s", "km2", "mm/day", 0.0864),
        ("ML/day", "km2", "mm/day", 1.0),
        ("m3/day", "km2", "mm/day", 1e-3),
        ("m3/h", "km2", "mm/h", 1e-3),
    ],
)
def test_factor_turns_flow_over_area_into_depth(flow: str, area: str, depth: str, expected: float) -> None:
    assert per_area_factor(flow, area, depth, "streamflow") == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("units", "message"),
    [
        (("gal/min", "km2", "mm/day"), "stored flow unit"),
        (("", "km2", "mm/day"), "stored flow unit"),
        (("m3/s", "acre", "mm/day"), "area unit"),
        (("m3/s", "km2", "mm"), "configured unit"),
    ],
)
def test_unknown_unit_is_refused_by_name_with_those_that_are_known(units: tuple[str, str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}.*camels_us, streamflow.*expected: .+") as caught:
        per_area_factor(*units, "camels_us, streamflow")
    assert caught.value.exit_code == 2
