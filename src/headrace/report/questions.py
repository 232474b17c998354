"""The page's own queries, one per file in ``sql/``; parameters are bound, never formatted in."""

from importlib.resources import files
from typing import Any

from headrace.loader import Index

Row = dict[str, Any]


def ask(index: Index, name: str, **parameters: object) -> list[Row]:
    """Return the rows of a named query."""
    text = files("headrace.report").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return rows_of(index, text, **parameters)


def rows_of(index: Index, text: str, **parameters: object) -> list[Row]:
    """Return the rows of a query as mappings."""
    found: list[Row] = index.sql(text, **parameters).to_pylist()
    return found
