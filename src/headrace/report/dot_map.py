"""Scores where the basins lie: a dot per basin on a grid of degrees. No coastline: pages need no other data."""

import math

import numpy as np
from numpy.typing import NDArray

from headrace.report.numbers import count, value
from headrace.report.plot import SHEET, Plot, Scale, dot_commands, path
from headrace.report.ticks import neat_ticks

CLASSES = ((-math.inf, 0.0), (0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, math.inf))
"""Half-open ranges of NSE, one colour each."""
_MARGIN = 0.04
_LEAST_DEGREES = 0.2


def class_name(low: float, high: float) -> str:
    """Return the name of a range of scores."""
    if low == -math.inf:
        return f"below {value(high)}"
    return f"{value(low)} or more" if high == math.inf else f"{value(low)} to {value(high)}"


def dot_map(
    title: str, latitude: NDArray[np.float64], longitude: NDArray[np.float64], score: NDArray[np.float64]
) -> Plot:
    """Draw basins by score.

    Parameters
    ----------
    title
        What is drawn.
    latitude, longitude
        float64 [N], degrees, finite.
    score
        float64 [N], NaN where undefined.
    """
    south, north = _padded(latitude)
    west, east = _padded(longitude)
    # One degree of longitude is cos φ of one of latitude; the sheet stretches, so the figure's shape has to say it.
    aspect = (east - west) * math.cos(math.radians((south + north) / 2)) / (north - south)
    wanted = min(max(aspect, 1.0), 2.4)
    if aspect < wanted:
        west, east = _widened(west, east, wanted / aspect)
    else:
        south, north = _widened(south, north, aspect / wanted)
    across, up = Scale.across(west, east), Scale.up(south, north)
    x_ticks = [across.tick(d, _degrees(d, "E", "W")) for d in neat_ticks(west, east, 5)]
    y_ticks = [up.tick(d, _degrees(d, "N", "S")) for d in neat_ticks(south, north, 5)]
    marks = path("grid", "".join(f"M0 {t.place * SHEET[1] / 100:.0f}h{SHEET[0]}" for t in y_ticks))
    marks += path("grid", "".join(f"M{t.place * SHEET[0] / 100:.0f} 0v{SHEET[1]}" for t in x_ticks))
    legend, words = [], []
    small = " small" if len(score) > 400 else ""
    undefined = np.isnan(score)
    for number, (low, high) in reversed(list(enumerate(CLASSES))):
        chosen = (score >= low) & (score < high)
        marks += path(f"dot c{number}{small}", dot_commands(across(longitude[chosen]), up(latitude[chosen])))
        name = class_name(low, high)
        legend.append((f"dot c{number}", f"{name} ({count(int(chosen.sum()))})"))
        words.append(f"{name}: {count(int(chosen.sum()))}")
    if undefined.any():
        marks += path(f"dot undefined{small}", dot_commands(across(longitude[undefined]), up(latitude[undefined])))
        legend.append(("dot undefined", f"undefined ({count(int(undefined.sum()))})"))
    return Plot(
        title=title,
        description=f"{count(len(score))} basins between {_span(latitude, 'N', 'S')} and {_span(longitude, 'E', 'W')}. "
        f"NSE {'; '.join(words)}.",
        marks=marks,
        x_ticks=x_ticks,
        y_ticks=y_ticks,
        legend=legend,
        height=420,
        aspect=round(wanted, 3),
    )


def _padded(degrees: NDArray[np.float64]) -> tuple[float, float]:
    low, high = float(degrees.min()), float(degrees.max())
    margin = max(_MARGIN * (high - low), (_LEAST_DEGREES - (high - low)) / 2)
    return low - margin, high + margin


def _widened(low: float, high: float, factor: float) -> tuple[float, float]:
    more = (high - low) * (factor - 1) / 2
    return low - more, high + more


def _degrees(degrees: float, positive: str, negative: str) -> str:
    return f"{value(abs(degrees), 5)}° {positive if degrees >= 0 else negative}" if degrees else "0°"


def _span(degrees: NDArray[np.float64], positive: str, negative: str) -> str:
    low, high = (_degrees(round(float(d), 1), positive, negative) for d in (degrees.min(), degrees.max()))
    return f"{low} – {high}"
