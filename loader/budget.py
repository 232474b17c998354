"""Memory budgets: read ``2GiB`` or ``auto``, and say how many pool rows fit."""

import re

import numpy as np
import psutil

from headrace.schemas.errors import ConfigError, describe

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*$")


def parse_nbytes(value: str | float, name: str) -> int:
    """Read a size such as ``512MiB``, ``2 GB`` or a plain number of bytes.

    Raises
    ------
    ConfigError
        The text is no size.
    """
    if isinstance(value, int | float | np.integer) and not isinstance(value, bool) and 0 <= value < 2**63:
        return int(value)
    match = _SIZE.match(value) if isinstance(value, str) else None
    if match is None or match.group(2).lower() not in _UNITS:
        raise ConfigError(
            describe(
                "size cannot be read",
                where=name,
                expected="a number with B, KiB, MiB, GiB, KB, MB or GB",
                got=repr(value),
                fix="write it like 2GiB",
            )
        )
    return int(float(match.group(1)) * _UNITS[match.group(2).lower()])


def memory_budget_nbytes(value: str | float) -> int:
    """Return the budget in bytes; ``auto`` is a quarter of the memory that is free now."""
    if value == "auto":
        return int(psutil.virtual_memory().available) // 4
    return parse_nbytes(value, "memory_budget")


def human_nbytes(nbytes: float) -> str:
    """Return a size for people: 1.5 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(nbytes) < 1024 or unit == "GiB":
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes} B"
