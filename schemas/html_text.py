"""Small tables in HTML, for those objects that a notebook shows: plain markup that takes the page's own colours."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

_CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"
_NUMBER = "text-align:right;padding:2px 10px 2px 0;vertical-align:top"


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """Return a headline and a table of two columns, name and value."""
    rows = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table></div>"


def table_html(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; whole numbers stand to the right, with separators."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="{_NUMBER}">{value:,}</td>'
    return f'<td style="{_CELL}">{escape(str(value))}</td>'
