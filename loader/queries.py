"""Run a person's query over the tables of an index, row by row of batches, and refuse what is no question."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import duckdb
import pyarrow as pa

from headrace.schemas.errors import ConfigError, describe

BATCH_ROWS = 100_000
"""Rows that a result hands over at a time."""


def run_query(
    connection: duckdb.DuckDBPyConnection, text: str, parameters: Mapping[str, object], *, where: str
) -> pa.RecordBatchReader:
    """Run a query; its rows come as they are asked for, and other queries may run meanwhile.

    Parameters
    ----------
    connection
        In which every table is a view.
    text
        The query; ``$name`` stands for a parameter.
    parameters
        Values to bind.
    where
        The index, for messages.

    Raises
    ------
    ConfigError
        The query is empty, would write a file, or DuckDB refuses it, at once or while rows are read; the message is
        DuckDB's own.
    """
    try:
        cursor = connection.cursor()  # an open result owns its connection
        _refuse_writing(cursor.extract_statements(text), where)
        relation: object = cursor.sql(text, params=dict(parameters) or None)
        if not isinstance(relation, duckdb.DuckDBPyRelation):
            return pa.RecordBatchReader.from_batches(pa.schema([]), [])
        reader = relation.to_arrow_reader(BATCH_ROWS)
    except duckdb.Error as error:
        raise _refused(error, where) from error
    return pa.RecordBatchReader.from_batches(reader.schema, _read(reader, cursor, where))


def _read(reader: Iterable[pa.RecordBatch], cursor: duckdb.DuckDBPyConnection, where: str) -> Iterator[pa.RecordBatch]:
    with cursor:
        try:
            yield from reader
        except (duckdb.Error, OSError) as error:  # Arrow passes DuckDB's errors on as OSError
            raise _refused(error, where) from error


def _refuse_writing(statements: Sequence[duckdb.Statement], where: str) -> None:
    """Raise :class:`ConfigError` for no query, and for one that copies: the tables' own files are open to DuckDB."""
    nested = (duckdb.StatementType.EXPLAIN, duckdb.StatementType.PREPARE)
    copies = any(
        s.type == duckdb.StatementType.COPY or (s.type in nested and re.search(r"\bcopy\b", s.query, re.IGNORECASE))
        for s in statements
    )
    if copies or not statements:
        raise ConfigError(
            describe(
                "query cannot be run",
                where=where,
                expected="a query that reads the tables",
                got="COPY, which writes files" if copies else "an empty query",
                fix="write the rows to a file with --output, --csv, --json or --parquet" if copies else "write a query",
            )
        )


def _refused(error: Exception, where: str) -> ConfigError:
    return ConfigError(
        describe(
            "query cannot be run",
            where=where,
            expected="DuckDB SQL over the tables and views of an index (headrace sql --help names them)",
            got=str(error).strip(),
            fix="correct the query",
        )
    )
