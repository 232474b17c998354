"""Rows as files: CSV, JSON lines, Markdown and Parquet, written batch by batch, so that any number of rows is fine."""

import csv
import json
import math
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.schemas.errors import ConfigError, describe

Writer = Callable[[pa.RecordBatchReader, IO[Any]], int]
"""Writes all rows to a stream and returns their number."""


def write_csv(rows: pa.RecordBatchReader, out: IO[str]) -> int:
    """Write a header and a line per row; NULL is an empty field."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows.schema.names)
    count = 0
    for values in _values(rows):
        writer.writerow(["" if value is None else _written(value) for value in values])
        count += 1
    return count


def write_json(rows: pa.RecordBatchReader, out: IO[str]) -> int:
    """Write one object a line (JSON Lines); what JSON has no number for is null."""
    names, count = rows.schema.names, 0
    for values in _values(rows):
        row = {name: plain(value) for name, value in zip(names, values, strict=True)}
        out.write(json.dumps(row, ensure_ascii=False, default=_text) + "\n")
        count += 1
    return count


def write_markdown(rows: pa.RecordBatchReader, out: IO[str]) -> int:
    """Write a table as GitHub shows it, numbers to the right."""
    edges = ["---:" if is_number(field.type) else "---" for field in rows.schema]
    out.write(f"| {' | '.join(_markdown(name) for name in rows.schema.names)} |\n| {' | '.join(edges)} |\n")
    count = 0
    for values in _values(rows):
        out.write(f"| {' | '.join(_markdown(value) for value in values)} |\n")
        count += 1
    return count


def write_parquet(rows: pa.RecordBatchReader, out: IO[bytes]) -> int:
    """Write a Parquet file.

    Raises
    ------
    ConfigError
        A column has a type that Parquet does not know.
    """
    count = 0
    try:
        writer = pq.ParquetWriter(out, rows.schema, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        raise ConfigError(
            describe(
                "the rows cannot be written as Parquet",
                where=", ".join(f"{field.name} {field.type}" for field in rows.schema),
                expected="types that Parquet knows",
                got=str(error),
                fix="cast the column in the query, to text say, or write CSV or JSON",
            )
        ) from error
    with writer:
        for batch in rows:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


WRITERS: dict[str, Writer] = {
    "csv": write_csv,
    "json": write_json,
    "markdown": write_markdown,
    "parquet": write_parquet,
}


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of a type are numbers."""
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def plain(value: object) -> object:
    """Return None for NaN and infinity, a number for DuckDB's wide sums, and words for an interval."""
    if isinstance(value, pa.MonthDayNano):
        parts = {"months": value.months, "days": value.days, "s": value.nanoseconds / 1e9}
        return " ".join(f"{count:g} {unit}" for unit, count in parts.items() if count) or "0 s"
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _values(rows: pa.RecordBatchReader) -> Iterable[tuple[Any, ...]]:
    for batch in rows:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _written(value: object) -> object:
    """Return a value as text formats have it; NaN and infinity stay what they are."""
    return plain(value) if isinstance(value, Decimal | pa.MonthDayNano) else value


def _markdown(value: object) -> str:
    text = "" if value is None else str(_written(value))
    return " ".join(text.replace("|", "\\|").split("\n"))
