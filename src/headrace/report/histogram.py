"""How values are spread, as bars."""

import numpy as np
from numpy.typing import NDArray

from headrace.report.numbers import count, value
from headrace.report.plot import SHEET, DataTable, Plot, Scale, bar_commands, grid_lines, path
from headrace.report.ticks import neat_range, neat_ticks

_MOST_BARS = 24
_X_TICKS, _Y_TICKS = 5, 3


def histogram(title: str, values: NDArray[np.float64], unit: str, counted: str, *, height: int = 96) -> Plot:
    """Draw how many values lie where.

    Parameters
    ----------
    title
        What is drawn.
    values
        float64 [N], at least one finite.
    unit
        Of the values.
    counted
        Noun of what a value stands for, plural.
    height
        In CSS pixels.
    """
    seen = values[np.isfinite(values)]
    low, high = neat_range(seen, _X_TICKS)
    edges = np.linspace(low, high, _num_bars(seen.size) + 1)
    number, _ = np.histogram(seen, edges)
    across, up = Scale.across(low, high), Scale.up(0.0, max(neat_range(np.append(number, 0.0), _Y_TICKS)[1], 1.0))
    y_ticks = up.ticks(_Y_TICKS, whole=True)
    x = across(edges)
    gap = min(6.0, SHEET[0] / len(number) / 6)
    marks = grid_lines(y_ticks)
    marks += path("bar", bar_commands(x[:-1] + gap, x[1:] - gap, up(number.astype(np.float64)), SHEET[1]))
    quartiles = np.quantile(seen, (0.0, 0.25, 0.5, 0.75, 1.0))
    words = " ".join(value(float(q), 3) for q in quartiles)
    at = [across.tick(n, value(n, 6)) for n in neat_ticks(low, high, _X_TICKS)]
    rows = [
        (f"{value(float(a), 3)} to {value(float(b), 3)}", count(int(n)))
        for a, b, n in zip(edges[:-1], edges[1:], number, strict=True)
        if n
    ]
    return Plot(
        title=title,
        description=f"{count(seen.size)} {counted}. Lowest, quarter points and highest: {words} {unit}.",
        marks=marks,
        x_ticks=at,
        y_ticks=y_ticks,
        x_label="" if unit == "1" else unit,
        height=height,
        table=DataTable(caption=title, header=(unit or "value", counted), rows=rows),
    )


def _num_bars(number: int) -> int:
    """Return Sturges' number of bars, and some more."""
    return int(min(_MOST_BARS, max(5, 2 * np.ceil(np.log2(number) + 1))))
