"""Align basin attributes by basin id, and say what to do about those that are missing.

Rows of the attributes store may come in any order; further rows are ignored; a basin without a row is missing.
"""

import numpy as np
from numpy.typing import NDArray

from headrace.schemas.errors import ConfigError, describe


def align(values: NDArray[np.float64], rows: dict[str, int], ids: list[str]) -> NDArray[np.float64]:
    """Return the values of the given basins, float64 [ids]; NaN for a basin without a row."""
    row = np.array([rows.get(name, -1) for name in ids], dtype=np.int64)
    return np.where(row >= 0, values[row] if values.size else np.nan, np.nan)


def check_static_missing(
    statics: dict[str, NDArray[np.float64]], ids: tuple[str, ...], *, policy: str, key: str
) -> list[int]:
    """Return the positions of basins to drop because an attribute is missing.

    Raises
    ------
    ConfigError
        The policy is ``error`` and a value is missing; lists basin and attribute.
    """
    gone = [
        (position, name) for name, values in statics.items() for position in np.flatnonzero(np.isnan(values)).tolist()
    ]
    if gone and policy == "error":
        gone.sort()
        listed = ", ".join(f"{ids[position]} × {name}" for position, name in gone[:12])
        more = f" and {len(gone) - 12} more" if len(gone) > 12 else ""
        raise ConfigError(
            describe(
                f"{len(gone)} static values are missing",
                where=f"{key}, basin × attribute",
                expected="a value for every configured basin",
                got=f"{listed}{more}",
                fix="set missing.static_missing: drop (leaves those basins out) or impute (uses the mean)",
            )
        )
    return sorted({position for position, _ in gone}) if policy == "drop" else []
