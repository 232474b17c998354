"""A long table of which a page shows the first rows, with all rows at hand for the page's script to look through."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from headrace.report.numbers import count
from headrace.report.plot import DataTable

SHOWN_ROWS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class FindTable:
    """A table that can be looked through.

    Parameters
    ----------
    key
        Makes the ids of its elements unique on the page.
    table
        The rows shown at first.
    data
        All rows as JSON, or nothing where all are shown.
    note
        How many there are, and what becomes of the others.
    """

    key: str
    table: DataTable
    data: Markup
    note: str


def find_table(
    key: str, caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], note: str, *, texts: int
) -> FindTable:
    """Return a table whose first :data:`SHOWN_ROWS` rows are shown."""
    shown = DataTable(caption=caption, header=header, rows=rows[:SHOWN_ROWS], texts=texts)
    data = as_script_json(rows) if len(rows) > SHOWN_ROWS else Markup()
    if data:
        note = f"{note} Shown: {SHOWN_ROWS} of {count(len(rows))}; the field finds the others."
    return FindTable(key=key, table=shown, data=data, note=note)


def as_script_json(data: Any) -> Markup:
    """Return JSON that no text in it can end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
