"""Where an axis is marked, and with what text."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from headrace.report.numbers import value

_NEAT = (1.0, 2.0, 2.5, 5.0)
_SLACK = 1e-9
"""Part of a step by which a value may miss a round number and still count as it."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def neat_ticks(low: float, high: float, most: int = 6, *, whole: bool = False) -> list[float]:
    """Return at most ``most`` round numbers from ``low`` to ``high``, evenly spaced.

    Parameters
    ----------
    low, high
        Ends of the axis, finite, ``low < high``.
    most
        Largest number of ticks, at least 2.
    whole
        Only integers.
    """
    for step in _neat_steps((high - low) / most, whole=whole):
        first, last = math.ceil(low / step - _SLACK), math.floor(high / step + _SLACK)
        if last - first + 1 <= most:
            return [i * step + 0.0 for i in range(first, last + 1)]
    raise AssertionError(f"no ticks between {low} and {high}")


def neat_range(values: NDArray[np.float64], most: int = 6) -> tuple[float, float]:
    """Return the ends of an axis that holds every finite value and begins and ends on one of ``most`` round numbers."""
    seen = values[np.isfinite(values)]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
    if low == high:
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, high + margin
    for step in _neat_steps((high - low) / most, whole=False):
        first, last = math.floor(low / step + _SLACK), math.ceil(high / step - _SLACK)
        if last - first + 1 <= most:
            return first * step + 0.0, last * step + 0.0
    raise AssertionError(f"no axis from {low} to {high}")


def _neat_steps(rough: float, *, whole: bool) -> Iterator[float]:
    """Yield round steps from about ``rough`` on, ever longer."""
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (f * tens for tens in (1.0, 10.0, 100.0, 1000.0) for f in _NEAT):
        step = factor * power
        if not whole or (step >= 1 and step == int(step)):
            yield step


def tick_texts(ticks: list[float]) -> list[str]:
    """Return the texts of ticks, with as many decimals as tell them apart."""
    return [value(tick, 12 if abs(tick) < 1e6 else 4) if abs(tick) > 1e-12 else "0" for tick in ticks]


def date_ticks(dates: NDArray[np.datetime64], most: int = 7) -> list[tuple[int, str]]:
    """Return (seconds since 1970, text) of years, months or days inside a time range.

    Parameters
    ----------
    dates
        datetime64[s] [2], first and last.
    most
        Largest number of ticks.
    """
    first, last = dates
    for step in (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200):
        start = np.int64(-(-first.astype("datetime64[M]").astype(np.int64) // step) * step)
        months = np.arange(start, last.astype("datetime64[M]").astype(np.int64) + 1, step)
        found = months.astype("datetime64[M]").astype("datetime64[s]")
        found = found[(found >= first) & (found <= last)]
        if len(found) <= most:
            break
    if len(found) >= 2:
        return [(int(date.astype(np.int64)), _month_text(date, step)) for date in found]
    return [(int(date.astype(np.int64)), str(date)[:10]) for date in (first, last)]


def _month_text(date: np.datetime64, step: int) -> str:
    year, month = str(date)[:7].rsplit("-", 1)
    return year if step >= 12 else f"{_MONTHS[int(month) - 1]} {year}"
