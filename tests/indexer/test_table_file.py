"""A table file depends on its rows alone: not on the stretches they came in."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.indexer.table_file import write_table

SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("value", pa.int64())], metadata={b"made": b"here"})


def table_of(size: int) -> pa.Table:
    """Return rows with repeated texts."""
    numbers = np.arange(size)
    return pa.table([[f"n{n % 7}" for n in numbers], numbers], schema=SCHEMA)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 200, 950])
@pytest.mark.parametrize("stretch", [1, 30, 100, 450])
def test_stretches_leave_no_trace(tmp_path: Path, size: int, stretch: int) -> None:
    """Cut anywhere, also at and across row groups, rows give the bytes of the table written in one piece."""
    table = table_of(size)
    cut = [table.slice(first, stretch) for first in range(0, size, stretch)]
    assert write_table(SCHEMA, cut, tmp_path / "cut", row_group=100) == size
    write_table(SCHEMA, [table], tmp_path / "whole", row_group=100)
    digests = {hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("cut", "whole")}
    assert len(digests) == 1
    found = pq.ParquetFile(tmp_path / "cut")
    assert found.read().equals(table, check_metadata=False)
    assert found.schema_arrow.metadata[b"made"] == b"here"
    assert found.num_row_groups == max(-(-size // 100), 1)


def test_no_stretch_at_all(tmp_path: Path) -> None:
    """A table without rows is a table all the same."""
    assert write_table(SCHEMA, [], tmp_path / "none") == 0
    assert pq.read_table(tmp_path / "none").schema.equals(SCHEMA)
