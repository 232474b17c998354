"""Figures made of lines: values over epochs, distributions, hydrographs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from headrace.report.numbers import count, plural, share, value
from headrace.report.plot import SHEET, DataTable, Plot, Scale, dot_commands, grid_lines, line_commands, path
from headrace.report.ticks import date_ticks, neat_range

Values = NDArray[np.float64]

NUM_COLOURS = 5
"""Series colours of the style sheet; later series repeat them with another dash."""
CDF_LOWEST = -1.0
_CDF_POINTS = 400
_DOTS = 40
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Series:
    """A named row of values."""

    name: str
    values: Values


def kind_of(number: int) -> str:
    """Return the classes of the line of a series."""
    dash = number // NUM_COLOURS % 3
    return f"line s{number % NUM_COLOURS}" + (f" dash{dash}" if dash else "")


def epoch_plot(title: str, epochs: Values, series: Sequence[Series], y_label: str, *, from_zero: bool = False) -> Plot:
    """Draw values over epochs; epochs are counted from 0 in files and shown from 1."""
    epochs = epochs + 1
    everything = np.concatenate([s.values for s in series])
    low, high = neat_range(np.append(everything, 0.0) if from_zero else everything, _TICKS)
    span = (float(epochs.min()), float(epochs.max())) if len(epochs) > 1 else (epochs[0] - 1.0, epochs[0] + 1.0)
    across, up = Scale.across(*span), Scale.up(low, high)
    y_ticks = up.ticks(_TICKS)
    marks = grid_lines(y_ticks)
    for number, s in enumerate(series):
        marks += path(kind_of(number), line_commands(across(epochs), up(s.values)))
        if len(epochs) <= _DOTS:
            seen = np.isfinite(s.values)
            marks += path(f"dot s{number}", dot_commands(across(epochs[seen]), up(s.values[seen])))
    rows = [(str(int(epoch)), *(value(float(s.values[i])) for s in series)) for i, epoch in enumerate(epochs.tolist())]
    return Plot(
        title=title,
        description=" ".join(_course(s) for s in series),
        marks=marks,
        x_ticks=across.ticks(8, whole=True),
        y_ticks=y_ticks,
        x_label="epoch",
        y_label=y_label,
        legend=[(kind_of(number), s.name) for number, s in enumerate(series)] if len(series) > 1 else (),
        table=DataTable(caption=title, header=("epoch", *(s.name for s in series)), rows=rows),
    )


def _course(series: Series) -> str:
    seen = series.values[np.isfinite(series.values)]
    if not seen.size:
        return f"{series.name}: no value."
    return (
        f"{series.name}: {value(float(seen[0]), 3)} at first, {value(float(seen[-1]), 3)} at last, "
        f"between {value(float(seen.min()), 3)} and {value(float(seen.max()), 3)}."
    )


def cdf_plot(title: str, series: Sequence[Series], x_label: str) -> Plot:
    """Draw the share of basins with at most a given score, a line per series.

    The axis begins at 0, or at :data:`CDF_LOWEST` where some value is below 0; what lies below that is said in words.
    """
    ordered = [Series(s.name, np.sort(s.values[np.isfinite(s.values)])) for s in series]
    ordered = [s for s in ordered if s.values.size]
    low = 0.0 if all(s.values[0] >= 0 for s in ordered) else CDF_LOWEST
    across, up = Scale.across(low, 1.0), Scale.up(0.0, 1.0)
    y_ticks = [up.tick(part, share(part)) for part in (0.0, 0.25, 0.5, 0.75, 1.0)]
    marks = grid_lines(y_ticks)
    legend, words, rows = [], [], []
    for number, s in enumerate(ordered):
        marks += path(kind_of(number), _step_commands(s.values, across, up))
        median, below = float(np.median(s.values)), int((s.values < low).sum())
        rest = f", {count(below)} below {value(low)}" if below else ""
        legend.append((kind_of(number), f"{s.name}: median {value(median, 3)}{rest}"))
        words.append(f"{s.name}: {plural(s.values.size, 'basin')}, median {value(median, 3)}{rest}.")
        quantiles = np.quantile(s.values, (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0))
        rows.append((s.name, count(s.values.size), *(value(float(q), 3) for q in quantiles)))
    header = ("data set", "basins", "lowest", "5 %", "25 %", "median", "75 %", "95 %", "highest")
    return Plot(
        title=title,
        description=" ".join(words),
        marks=marks,
        x_ticks=across.ticks(6),
        y_ticks=y_ticks,
        x_label=x_label,
        y_label="share of basins",
        legend=legend,
        table=DataTable(caption=title, header=header, rows=rows),
    )


def _step_commands(ordered: Values, across: Scale, up: Scale) -> str:
    """Return the commands of a distribution's steps, at most some hundred of them."""
    number = np.unique(np.linspace(0, ordered.size - 1, min(ordered.size, _CDF_POINTS)).round().astype(np.int64))
    at, part = ordered[number], (number + 1) / ordered.size
    started = float((ordered < across.low).mean())
    inside = at >= across.low
    x, y = np.rint(across(at[inside])).astype(int), np.rint(up(part[inside])).astype(int)
    steps = "".join(f"H{a}V{b}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return f"M0 {float(up(started)):.0f}{steps}H{SHEET[0]}"


def hydrograph(title: str, dates: NDArray[np.datetime64], observed: Values, simulated: Values, y_label: str) -> Plot:
    """Draw an observed and a simulated series.

    Parameters
    ----------
    title
        Which basin, and how good.
    dates
        datetime64[s] [T].
    observed, simulated
        float [T], NaN where there is none.
    y_label
        Variable and unit.
    """
    seconds = dates.astype(np.int64).astype(np.float64)
    first, last = seconds[0], seconds[-1] if len(seconds) > 1 else seconds[0] + 1
    both = np.concatenate([observed, simulated, [0.0]])
    low, high = float(np.nanmin(both)), neat_range(np.maximum(both, 0.0), _TICKS)[1]
    across, up = Scale.across(first, last), Scale.up(low, high)
    y_ticks = up.ticks(_TICKS)
    ticks = date_ticks(dates[[0, -1]])
    marks = grid_lines(y_ticks)
    marks += path("line observed", line_commands(across(seconds), up(observed)))
    marks += path("line s1", line_commands(across(seconds), up(simulated)))
    seen = np.isfinite(observed)
    return Plot(
        title=title,
        description=(
            f"From {str(dates[0])[:10]} to {str(dates[-1])[:10]}. Observed on {count(int(seen.sum()))} of "
            f"{count(len(dates))} steps, {_span(observed)}; simulated {_span(simulated)}."
        ),
        marks=marks,
        x_ticks=[across.tick(at, text, spare=i % 2 == 1) for i, (at, text) in enumerate(ticks)],
        y_ticks=y_ticks,
        y_label=y_label,
        legend=[("line observed", "observed"), ("line s1", "simulated")],
        height=190,
    )


def _span(values: Values) -> str:
    seen = values[np.isfinite(values)]
    return f"{value(float(seen.min()), 3)} to {value(float(seen.max()), 3)}" if seen.size else "never"


def empty_plot(title: str, words: str) -> Plot:
    """Return a figure that says why it is empty."""
    return Plot(title=title, description=words, marks=Markup(), note=words, height=0)
