"""How a table fits a terminal: which widths its columns get, which texts are cut where, when rows become records.

Numbers are never cut; texts lose their middle, or their end where they are sentences. Pure functions over text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

LEAST_TEXT = 8
"""Cells that a text keeps at least, headers included."""
LEAST_HEADER = 5
"""Cells that the header of a column of short values keeps at least."""
_RECORD_LINES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column as it would be shown without a limit."""

    name: str
    cells: tuple[str, ...]
    numeric: bool

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
        if self.numeric:
            return max(self.widest, min(cell_len(self.name), LEAST_HEADER))
        return min(self.natural, LEAST_TEXT)


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
    """Return widths that fit, the widest columns cut first, or None where the columns do not fit at their least."""
    room = width - 3 * len(columns) - 1
    if sum(column.least for column in columns) > room:
        return None
    cap = max((column.natural for column in columns), default=0)
    while True:
        widths = tuple(min(column.natural, max(column.least, cap)) for column in columns)
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


def one_line(text: str) -> str:
    """Return a text that a terminal shows as it is: control characters are written out."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
