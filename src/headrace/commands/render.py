"""Arrow tables on a terminal (at most 100 columns wide), as CSV, or as JSON lines."""

import csv
import json
import math
import sys
from datetime import date, datetime
from decimal import Decimal

import click
import pyarrow as pa
from rich.table import Table

from headrace.commands.terminal import make_console

FORMATS = ("table", "csv", "json")


def write_table(table: pa.Table, form: str, *, limit: int = 0, title: str | None = None) -> None:
    """Print rows to standard output.

    Parameters
    ----------
    table
        The rows.
    form
        One of :data:`FORMATS`.
    limit
        Rows that a terminal table shows; 0 shows all.
    title
        Headline of a terminal table.
    """
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow(["" if v is None else v for v in row.values()])
    elif form == "json":
        for row in table.to_pylist():
            click.echo(json.dumps({k: _json(v) for k, v in row.items()}, ensure_ascii=False, default=_plain))
    else:
        _write_terminal(table, limit, title)


def _write_terminal(table: pa.Table, limit: int, title: str | None) -> None:
    if not table.num_columns:
        return  # a statement that answers nothing
    console = make_console()
    shown = table.slice(0, limit) if limit else table
    grid = Table(title=title, title_justify="left", header_style="bold")
    for field in table.schema:
        numeric = any(test(field.type) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
        grid.add_column(field.name, justify="right" if numeric else "left", overflow="fold")
    for row in shown.to_pylist():
        grid.add_row(*(_cell(value) for value in row.values()))
    console.print(grid, markup=False)
    rest = table.num_rows - shown.num_rows
    if rest:
        console.print(f"{shown.num_rows:,} of {table.num_rows:,} rows; --limit 0 shows all")


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Decimal):
        return _cell(_json(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return str(value)


def _json(value: object) -> object:
    """Return None for NaN and infinity, which JSON does not know, and a number for DuckDB's wide sums."""
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
