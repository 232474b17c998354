"""Which tables a query reads, asked before any of them is there."""

import re
from collections.abc import Collection

import duckdb

_CATALOGUE = re.compile(
    r"\b(show|describe|pragma|call|information_schema|sqlite_master|duckdb_\w+|pg_\w+)\b", re.IGNORECASE
)
"""What asks for the tables themselves rather than for their rows."""
_COMPOSED = re.compile(r"\bquery(_table)?\s*\(", re.IGNORECASE)
"""What makes names of tables, or whole queries, out of text."""


def names_in(empty: duckdb.DuckDBPyConnection, text: str, known: Collection[str]) -> set[str]:
    """Return those of some tables and views that a query may read: all that it does, now and then more.

    Parameters
    ----------
    empty
        A connection without any table, which parses the query and runs nothing: of one over a Parquet file DuckDB tells
        no names.
    text
        One or several statements.
    known
        Names to look for.
    """
    if _COMPOSED.search(text):
        return set(known)
    words = {word.lower() for word in re.findall(r"(?<![\w$])\w+", text)}
    named = {name for name in known if name.lower() in words}
    if _CATALOGUE.search(text):
        return named or set(known)
    try:
        statements = empty.extract_statements(text)
        read = {name.lower() for s in statements for name in empty.get_table_names(s.query)}
    except duckdb.Error:
        # DuckDB looks names up while it parses some queries (JOIN … USING, CREATE VIEW), and then wants the columns.
        return named
    return {name for name in known if name.lower() in read}
