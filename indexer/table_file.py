"""Table files: rows come in stretches and go out in row groups of fixed size, so that a table is never held whole.

Equal rows give equal bytes, however they were cut into stretches.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.indexer.output import written

ROW_GROUP = 1 << 20


def write_table(schema: pa.Schema, stretches: Iterable[pa.Table], path: Path, *, row_group: int = ROW_GROUP) -> int:
    """Write a table whole or not at all, without waiting for the disk; return its number of rows.

    Parameters
    ----------
    schema
        Of every stretch.
    stretches
        The rows, in order.
    path
        File to write.
    row_group
        Rows of every row group but the last.
    """
    num_rows = 0
    with (
        written(path, sync=False) as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=3,
            version="2.6",
            data_page_version="1.0",
            use_dictionary=True,
            write_statistics=True,
        ) as writer,
    ):
        for group in _groups(schema, stretches, row_group):
            writer.write_table(group, row_group_size=row_group)
            num_rows += group.num_rows
            del group  # the next one takes as much
    pa.default_memory_pool().release_unused()
    return num_rows


def _groups(schema: pa.Schema, stretches: Iterable[pa.Table], row_group: int) -> Iterator[pa.Table]:
    """Cut and join stretches to row groups, each one piece of memory; a table without rows has one empty group."""
    waiting, num_waiting, any_yet = list[pa.Table](), 0, False
    for stretch in stretches:
        waiting.append(stretch)
        num_waiting += stretch.num_rows
        del stretch  # what is copied below need not be held
        while num_waiting >= row_group:
            joined = pa.concat_tables(waiting)
            waiting, num_waiting, any_yet = [joined.slice(row_group)], num_waiting - row_group, True
            columns = joined.slice(0, row_group).columns
            del joined
            for number in range(len(columns)):
                columns[number] = columns[number].combine_chunks()
            yield pa.Table.from_arrays(columns, schema=schema)
            del columns
    if num_waiting or not any_yet:
        yield pa.concat_tables(waiting).combine_chunks() if waiting else schema.empty_table()
