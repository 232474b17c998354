"""Pieces of columns to stretches of a table's rows, made as they are asked for and sorted by the table's key."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace.indexer.ordering import in_order, is_sorted
from headrace.schemas.tables import TABLES

Columns = Mapping[str, Any]
"""Column name to its values, or to one text or number for all rows."""

STRETCH = 1 << 18
"""Rows made at once: texts are repeated in every row, so a whole table would take many times its file."""


def stretches(name: str, pieces: Sequence[Columns]) -> Iterator[pa.Table]:
    """Turn pieces of columns into rows sorted by the table's key: piece by piece where that is possible."""
    schema, key = TABLES[name].schema, TABLES[name].key
    ordered = _in_order(pieces, key)
    if ordered is not None:
        for piece in ordered:
            for first in range(0, _length(piece), STRETCH):
                yield _rows(schema, {column: _cut(value, first) for column, value in piece.items()})
    elif pieces:
        yield in_order(pa.concat_tables([_rows(schema, piece) for piece in pieces]).combine_chunks(), key)


def _in_order(pieces: Sequence[Columns], key: Sequence[str]) -> list[Columns] | None:
    """Sort pieces by the texts that lead their key; None where that does not sort the rows."""
    lead = min((_num_leading_texts(piece, key) for piece in pieces), default=0)
    texts = [tuple(piece[column] for column in key[:lead]) for piece in pieces]
    if len(set(texts)) < len(texts):
        return None
    for piece in pieces:
        rest = [column for column in key[lead:] if not isinstance(piece[column], str)]
        if len(rest) < len(key) - lead or not is_sorted(pa.table({c: pa.array(piece[c]) for c in rest}), rest):
            return None
    return [pieces[i] for i in sorted(range(len(pieces)), key=texts.__getitem__)]


def _num_leading_texts(piece: Columns, key: Sequence[str]) -> int:
    return next((i for i, column in enumerate(key) if not isinstance(piece[column], str)), len(key))


def _rows(schema: pa.Schema, piece: Columns) -> pa.Table:
    length = _length(piece)
    arrays = []
    for column in schema:
        value = piece[column.name]
        if isinstance(value, str | int | float):
            arrays.append(pa.repeat(pa.scalar(value, column.type), length))
        else:
            arrays.append(pa.array(value, column.type) if not isinstance(value, pa.Array) else value.cast(column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _length(piece: Columns) -> int:
    return max((len(c) for c in piece.values() if not isinstance(c, str | int | float)), default=1)


def _cut(value: Any, first: int) -> Any:
    return value if isinstance(value, str | int | float) else value[first : first + STRETCH]
