"""What a figure is made of: marks in SVG, ticks and words in HTML, and its numbers as a table behind it.

Marks are drawn on a sheet of fixed units that stretches with the page, with strokes of fixed width; text is never
stretched, so a figure reads the same on a phone. Colours are the style sheet's, by class name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from headrace.report.ticks import neat_ticks, tick_texts

SHEET = (2000, 1000)
"""Width and height of the sheet of marks, in its own units."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: per cent of its length from the left or the top, and its text."""

    place: float
    text: str
    spare: bool = False
    """Left out on narrow screens."""

    @property
    def kind(self) -> str:
        """Class of the tick: spare, and whether its text is so long that it must not stand out at an end."""
        long = len(self.text) > 4
        ends = ("first", self.place < 1), ("last", self.place > 99)
        return " ".join([*(["spare"] if self.spare else []), *(name for name, there in ends if there and long)])


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """Numbers as text, row by row; the first column names the row, and the first ``texts`` columns are words."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One figure.

    Parameters
    ----------
    title
        What is drawn.
    description
        What it shows, for whoever cannot see it.
    marks
        Content of the SVG element.
    x_ticks, y_ticks, x_label, y_label
        The axes.
    legend
        (class, text) of each kind of mark; empty where there is one only.
    height
        In CSS pixels.
    aspect
        Width by height where that matters, as on a map; then ``height`` is the largest.
    table
        The numbers.
    note
        A sentence below.
    sheet
        Size of the sheet that the marks lie on.
    ramp
        Class of the colours of a map's levels, '' for the usual ones.
    readout
        Attributes of the element that the page's script reads values from.
    """

    title: str
    description: str
    marks: Markup
    x_ticks: Sequence[Tick] = ()
    y_ticks: Sequence[Tick] = ()
    x_label: str = ""
    y_label: str = ""
    legend: Sequence[tuple[str, str]] = ()
    height: int = 220
    aspect: float | None = None
    table: DataTable | None = None
    note: str = ""
    sheet: tuple[int, int] = SHEET
    ramp: str = ""
    readout: dict[str, str] = field(default_factory=dict)

    @property
    def widest_y(self) -> str:
        """The longest text on the y axis, which says how wide that is."""
        return max((tick.text for tick in self.y_ticks), key=len, default="")


@dataclass(frozen=True, slots=True)
class Scale:
    """Values → units of the sheet, linearly; ``reach`` is what ``high`` becomes and ``origin`` what ``low`` becomes."""

    low: float
    high: float
    origin: int
    reach: int

    @classmethod
    def across(cls, low: float, high: float) -> "Scale":
        """Return the scale of an x axis."""
        return cls(low, high, 0, SHEET[0])

    @classmethod
    def up(cls, low: float, high: float) -> "Scale":
        """Return the scale of a y axis."""
        return cls(low, high, SHEET[1], 0)

    def __call__(self, values: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return float64 units; NaN stays."""
        part = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
        return self.origin + part * (self.reach - self.origin)

    def ticks(self, most: int = 6, *, whole: bool = False) -> list[Tick]:
        """Return round numbers along the axis."""
        numbers = neat_ticks(self.low, self.high, most, whole=whole)
        return [self.tick(n, text) for n, text in zip(numbers, tick_texts(numbers), strict=True)]

    def tick(self, number: float, text: str, *, spare: bool = False) -> Tick:
        """Return a tick at a value."""
        return Tick(round(100 * float(self(number)) / max(self.origin, self.reach), 2), text, spare)


def path(kind: str, commands: str) -> Markup:
    """Return a path of a class."""
    return Markup('<path class="{}" d="{}"/>').format(kind, commands) if commands else Markup()


def grid_lines(y_ticks: Sequence[Tick]) -> Markup:
    """Return thin lines across the sheet at the ticks of the y axis."""
    return path("grid", "".join(f"M0 {tick.place * SHEET[1] / 100:.0f}h{SHEET[0]}" for tick in y_ticks))


def line_commands(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Return path commands of a line through points in units of the sheet; it breaks where y is NaN.

    A point between two breaks is a line of no length, which round ends make a dot.
    """
    seen = np.isfinite(x) & np.isfinite(y)
    if not seen.any():
        return ""
    xi, yi = np.rint(x[seen]).astype(np.int64), np.rint(y[seen]).astype(np.int64)
    number = np.flatnonzero(seen)
    begins = np.flatnonzero(np.diff(number, prepend=-2) > 1).tolist()
    pieces = []
    for begin, end in zip(begins, [*begins[1:], len(xi)], strict=True):
        dx, dy = np.diff(xi[begin:end]), np.diff(yi[begin:end])
        steps = "".join(f" {a} {b}" for a, b in zip(dx.tolist(), dy.tolist(), strict=True))
        pieces.append(f"M{xi[begin]} {yi[begin]}" + (f"l{steps[1:]}" if steps else "h0"))
    return "".join(pieces)


def dot_commands(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Return path commands of a dot at each point in units of the sheet."""
    return "".join(f"M{a} {b}h0" for a, b in zip(np.rint(x).astype(int), np.rint(y).astype(int), strict=True))


def bar_commands(left: NDArray[np.float64], right: NDArray[np.float64], top: NDArray[np.float64], base: float) -> str:
    """Return path commands of bars in units of the sheet; a bar of no height is left out."""
    return "".join(
        f"M{a:.0f} {base:.0f}V{t:.0f}H{b:.0f}V{base:.0f}z"
        for a, b, t in zip(left, right, top, strict=True)
        if round(t) != round(base)
    )
