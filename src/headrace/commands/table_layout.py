"""How a table fits a terminal: which widths its columns get, which texts are cut where, when rows become records.

Numbers and times are never cut; texts lose their middle, or their end where they are sentences; names of columns are
broken at their underscores. Pure functions over text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

LEAST_TEXT = 8
"""Cells that a text keeps at least."""
LEAST_HEADER = 12
"""Cells that a word of a column's name keeps at least."""
_RECORD_LINES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column as it would be shown without a limit; the values of a ``whole`` one are never cut."""

    name: str
    cells: tuple[str, ...]
    whole: bool
    right: bool = False

    @property
    def natural(self) -> int:
        """Terminal cells that it takes uncut."""
        return max(cell_len(self.name), self.widest)

    @property
    def widest(self) -> int:
        """Terminal cells of its longest value."""
        return max((cell_len(cell) for cell in self.cells), default=0)

    @property
    def least(self) -> int:
        """Terminal cells below which it says nothing any more."""
        header = min(max(map(cell_len, _words(self.name))), LEAST_HEADER)
        return max(header, self.widest if self.whole else min(self.widest, LEAST_TEXT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Columns to show, from the left, and how wide; ``records`` where rows are better written one below the other."""

    widths: tuple[int, ...]
    records: bool


def lay_out(columns: Sequence[Column], width: int) -> Layout:
    """Choose widths so that the columns and their frame take at most ``width`` cells.

    Parameters
    ----------
    columns
        All columns of the table.
    width
        Of the terminal.
    """
    num_rows = len(columns[0].cells) if columns else 0
    whole = _widths(columns, width)
    if any("\n" in cell for column in columns for cell in column.cells):
        return Layout(widths=(), records=True)
    if whole is not None:
        return Layout(widths=whole, records=False)
    if num_rows * (len(columns) + 1) <= _RECORD_LINES:
        return Layout(widths=(), records=True)
    for shown in range(len(columns) - 1, 0, -1):
        some = _widths(columns[:shown], width)
        if some is not None:
            return Layout(widths=some, records=False)
    return Layout(widths=(), records=True)


def _widths(columns: Sequence[Column], width: int) -> tuple[int, ...] | None:
    """Return widths that fit: names are broken first, then the widest texts cut; None where nothing fits."""
    room = width - 3 * len(columns) - 1
    natural = tuple(column.natural for column in columns)
    if sum(natural) <= room:
        return natural
    if sum(column.least for column in columns) > room:
        return None
    cap = max(natural)
    while True:
        widths = tuple(max(c.least, 0 if c.whole else min(c.widest, cap)) for c in columns)
        if sum(widths) <= room:
            return widths
        cap -= 1


def shorten(text: str, width: int) -> str:
    """Cut a text to ``width`` terminal cells: a sentence at its end, an id or a path in its middle."""
    if cell_len(text) <= width:
        return text
    if width < 1:
        return ""
    tail = 0 if " " in text else (width - 1) // 2
    head = chop_cells(text, width - 1 - tail)[0] if width - 1 - tail else ""
    end = chop_cells(text[::-1], tail)[0][::-1] if tail else ""
    return f"{head}…{end}"


def header_lines(name: str, width: int) -> list[str]:
    """Break the name of a column at its underscores into lines of at most ``width`` terminal cells."""
    lines = [""]
    for word in _words(name):
        if lines[-1] and cell_len(lines[-1] + word) > width:
            lines.append("")
        lines[-1] += word
    return [shorten(line, width) for line in lines]


def _words(name: str) -> list[str]:
    """Return the parts of a name, each with the underscore behind it."""
    parts = name.split("_")
    return [*(f"{part}_" for part in parts[:-1]), parts[-1]]


def one_line(text: str) -> str:
    """Return a text that a terminal shows as it is: control characters are written out."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
