"""Rows of a query to where they are wanted: a table on the terminal, at most 100 columns wide, or a file."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from typing import IO, Any

import click
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headrace.commands.row_formats import WRITERS, is_number, plain
from headrace.commands.row_options import RowTarget
from headrace.commands.table_layout import Column, Layout, header_lines, lay_out, one_line, shorten
from headrace.commands.terminal import WIDTH, make_console
from headrace.trainer.run_folder import replacing

Convert = Callable[[pa.RecordBatch], pa.RecordBatch]


def write_rows(
    rows: pa.RecordBatchReader,
    target: RowTarget,
    *,
    title: str | None = None,
    since: float | None = None,
    convert: Convert | None = None,
) -> None:
    """Write all rows.

    Parameters
    ----------
    rows
        Read once, and never held whole but for what a table shows.
    target
        Form, place, and how many rows a table shows.
    title
        Headline of a table.
    since
        ``time.perf_counter()`` when the query began: a table ends with how long it took.
    convert
        Makes of rows what is written of them; a table asks it only for those that it shows.
    """
    if target.form == "table":
        with _opened(target) as stream:
            console = make_console() if target.path is None else Console(file=stream, width=WIDTH)
            num_rows = _write_table(rows, console, target.limit, title, since, convert)
    else:
        with _opened(target) as stream:
            num_rows = WRITERS[target.form](rows if convert is None else _converted(rows, convert), stream)
    if target.path is not None:
        click.echo(f"{_rows(num_rows)} written to {target.path}", err=True)


@contextmanager
def _opened(target: RowTarget) -> Iterator[IO[Any]]:
    """Open where rows go; a file is there whole or not at all."""
    if target.path is None:
        stream: IO[Any] = sys.stdout.buffer if target.binary else sys.stdout
        with nullcontext(stream):
            yield stream
        return
    special = target.path.exists() and not target.path.is_file()  # a pipe, a terminal: nothing to replace
    with nullcontext(target.path) if special else replacing(target.path) as partial:
        if target.binary:
            with partial.open("wb") as file:
                yield file
        else:
            with partial.open("w", encoding="utf-8", newline="") as text:
                yield text


def _write_table(
    rows: pa.RecordBatchReader,
    console: Console,
    limit: int,
    title: str | None,
    since: float | None,
    convert: Convert | None,
) -> int:
    if not rows.schema.names:
        return 0  # a statement that answers nothing
    kept: list[pa.RecordBatch] = []
    num_rows = num_kept = 0
    for batch in rows:
        num_rows += batch.num_rows
        wanted = batch.slice(0, limit - num_kept) if limit else batch
        if wanted.num_rows:
            kept.append(wanted)
            num_kept += wanted.num_rows
    took = None if since is None else time.perf_counter() - since
    kept = kept or [_no_row(rows.schema)]
    shown = pa.Table.from_batches(kept if convert is None else map(convert, kept))
    columns = [
        Column(
            name=one_line(field.name),
            cells=tuple(map(_cell, values.to_pylist())),
            whole=is_number(field.type) or pa.types.is_temporal(field.type),
            right=is_number(field.type),
        )
        for field, values in zip(shown.schema, shown.columns, strict=True)
    ]
    layout = lay_out(columns, console.width)
    if title is not None:
        console.print(Text(title, style="italic"))
    if layout.records:
        _print_records(console, columns, num_kept)
    else:
        console.print(_grid(columns, layout))
    for note in _notes(columns, layout, num_kept, num_rows, took):
        console.print(note, highlight=False, markup=False)
    return num_rows


def _converted(rows: pa.RecordBatchReader, convert: Convert) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(convert(_no_row(rows.schema)).schema, map(convert, rows))


def _no_row(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _grid(columns: list[Column], layout: Layout) -> Table:
    grid = Table(header_style="bold")
    shown = columns[: len(layout.widths)]
    for column, width in zip(shown, layout.widths, strict=True):
        name = Text("\n".join(header_lines(column.name, width)))
        grid.add_column(name, justify="right" if column.right else "left", width=width, no_wrap=True)
    for cells in zip(*(column.cells for column in shown), strict=True):
        grid.add_row(*(Text(shorten(c, width)) for c, width in zip(cells, layout.widths, strict=True)))
    return grid


def _print_records(console: Console, columns: list[Column], num_rows: int) -> None:
    """Print each row as lines ``name  value``: nothing is cut."""
    widest = max(len(column.name) for column in columns)
    for row in range(num_rows):
        if num_rows > 1:
            console.print(Text(f"row {row + 1}", style="bold"))
        for column in columns:
            text = column.cells[row]
            if "\n" in text:
                console.print(Text(f"{column.name}\n{text}"), soft_wrap=True)
            else:
                console.print(Text(f"{column.name:<{widest}}  {text}"), soft_wrap=True)


def _notes(columns: list[Column], layout: Layout, num_kept: int, num_rows: int, took: float | None) -> Iterator[str]:
    hidden = [] if layout.records else columns[len(layout.widths) :]
    if hidden:
        names = ", ".join(column.name for column in hidden)
        yield f"{len(hidden)} more column{'s' * (len(hidden) > 1)}: {names}"
    if num_kept < num_rows:
        yield f"{num_rows - num_kept:,} more of {_rows(num_rows)}: --limit 0 shows all, --csv FILE keeps them"
    if took is not None:
        yield f"{_rows(num_rows)} in {_seconds(took)}"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, Decimal | pa.MonthDayNano):
        return _cell(plain(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return "\n".join(one_line(line) for line in str(value).split("\n"))


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


def _seconds(value: float) -> str:
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.2f} s"
