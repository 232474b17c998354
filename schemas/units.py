"""The few units of streamflow, depth and area that ``per_area`` converts between, and a tidy form of unit names.

Depth rate = volume rate / area. Anything not listed here is refused by name instead of guessed.
"""

import re

from headrace.schemas.errors import ConfigError, describe

_VOLUME_RATE = {  # m³/s per unit
    "m3/s": 1.0,
    "m3/h": 1.0 / 3600.0,
    "m3/day": 1.0 / 86400.0,
    "l/s": 1e-3,
    "ml/day": 1e3 / 86400.0,
    "ft3/s": 0.3048**3,
}
_DEPTH_RATE = {  # m/s per unit
    "m/s": 1.0,
    "m/h": 1.0 / 3600.0,
    "m/day": 1.0 / 86400.0,
    "cm/day": 1e-2 / 86400.0,
    "mm/s": 1e-3,
    "mm/h": 1e-3 / 3600.0,
    "mm/day": 1e-3 / 86400.0,
}
_AREA = {"km2": 1e6, "m2": 1.0, "ha": 1e4, "mi2": 1609.344**2}  # m² per unit
_SPELLINGS = {
    "m3/s": "cms cumecs m3s-1",
    "m3/day": "m3/d",
    "l/s": "ls-1",
    "ml/day": "ml/d",
    "ft3/s": "cfs cubicfeetpersecond",
    "m/day": "m/d",
    "mm/day": "mm/d mmd-1 mmday-1",
    "mm/h": "mm/hr mm/hour mmh-1",
    "km2": "sqkm",
    "degC": "degc c °c celsius",
    "K": "k kelvin",
}
_ALIASES = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()}


def tidy(unit: str) -> str:
    """Return one spelling for the many of a unit: ``m^3/s``, ``m³ s-1`` and ``cms`` are all ``m3/s``."""
    text = (
        unit.strip()
        .replace("³", "3")
        .replace("²", "2")
        .replace("**", "")
        .replace("^", "")
        .replace("⁻", "-")
        .replace("¹", "1")
    )
    text = re.sub(r"[\s·*_]+", "", text).lower()
    return _ALIASES.get(text, text)


def same_unit(first: str, second: str) -> bool:
    """Return whether two unit texts mean the same unit."""
    return tidy(first) == tidy(second)


def surely_differ(first: str, second: str) -> bool:
    """Return whether both texts name units that are known here, and not the same one."""
    known = {*_VOLUME_RATE, *_DEPTH_RATE, *_AREA, "degC", "K"}
    return tidy(first) in known and tidy(second) in known and not same_unit(first, second)


def per_area_factor(flow: str, area: str, depth: str, where: str, area_name: str = "area") -> float:
    """Return f such that depth = flow × f / area, each in its own unit.

    ``where`` names the variable and ``area_name`` what its ``per_area`` says, for the message.

    Raises
    ------
    ConfigError
        One of the three units is not known.
    """
    for unit, table, what, fix in (
        (flow, _VOLUME_RATE, "stored flow", "mend the attribute units of the array in the store"),
        (
            area,
            _AREA,
            "area",
            f"say its unit where it is a constant: {area_name}: {{physical: …, unit: km2}} under variables.constant, "
            "with scale where the stored one is another",
        ),
        (depth, _DEPTH_RATE, "configured", "give one of these as unit"),
    ):
        if tidy(unit) not in table:
            raise ConfigError(
                describe(
                    f"per_area does not know the {what} unit",
                    where=where,
                    expected=", ".join(sorted(table)),
                    got=repr(unit),
                    fix=f"{fix}; or leave per_area out",
                )
            )
    return _VOLUME_RATE[tidy(flow)] / _AREA[tidy(area)] / _DEPTH_RATE[tidy(depth)]
