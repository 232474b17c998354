"""Explicit Arrow schema and sort key of every table of an index.

The tables are the only bridge between the two phases: the indexer writes exactly these columns, the loader reads
exactly these. Ids are text, steps int32, counts int64, values float64, and no column is nullable.
"""

from dataclasses import dataclass

import pyarrow as pa

FORMAT_VERSION = 3
"""Raised whenever a reader of an older version would misread the tables."""

_TEXT, _STEP, _COUNT, _VALUE = pa.string(), pa.int32(), pa.int64(), pa.float64()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table.

    Parameters
    ----------
    name
        File name without ``.parquet``.
    schema
        Column names and types.
    key
        Columns the rows are sorted by.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]


def _table(name: str, key: str, **columns: pa.DataType) -> Table:
    fields = [pa.field(column, kind, nullable=False) for column, kind in columns.items()]
    metadata = {b"headrace.table": name.encode(), b"headrace.format_version": str(FORMAT_VERSION).encode()}
    return Table(name=name, schema=pa.schema(fields, metadata=metadata), key=tuple(key.split()))


DATASETS = _table(
    "datasets", "dataset_id",
    dataset_id=_TEXT, timeseries_uri=_TEXT, attributes_uri=_TEXT, num_basins=_STEP, num_steps=_STEP, time_start=_TEXT,
    step_seconds=_COUNT, calendar=_TEXT, weight=_VALUE, fingerprint=_TEXT,
)  # fmt: skip
SEGMENTS = _table(
    "segments", "dataset_id segment", dataset_id=_TEXT, segment=_STEP, start=_STEP, stop=_STEP, time_start=_TEXT
)
TIME_ORDER = _table("time_order", "dataset_id step", dataset_id=_TEXT, step=_STEP, store_step=_STEP)
PERIODS = _table(
    "periods", "dataset_id split",
    dataset_id=_TEXT, split=_TEXT, start=_STEP, stop=_STEP, time_start=_TEXT, time_last=_TEXT,
)  # fmt: skip
BASINS = _table(
    "basins", "dataset_id basin", dataset_id=_TEXT, basin=_STEP, basin_id=_TEXT, store_row=_STEP, splits=_TEXT
)
VARIABLES = _table(
    "variables", "dataset_id variable",
    dataset_id=_TEXT, variable=_TEXT, role=_TEXT, array=_TEXT, unit=_TEXT, scale=_VALUE, offset=_VALUE,
    storage_fill_value=_TEXT, model_fill_value=_VALUE, dtype=_TEXT, dims=_TEXT, chunk_shape=_TEXT, shard_shape=_TEXT,
    present=pa.bool_(), position=_STEP, missing_rule=_TEXT, decode_digest=_TEXT, decode_rule=_TEXT,
)  # fmt: skip
ARRAYS = _table(
    "arrays", "dataset_id store array variable",
    dataset_id=_TEXT, store=_TEXT, array=_TEXT, variable=_TEXT, kind=_TEXT, metadata=_TEXT, objects=_TEXT,
    content=_TEXT, decode_rule=_TEXT,
)  # fmt: skip
CHUNKS = _table(
    "chunks", "dataset_id variable basin_chunk time_chunk",
    dataset_id=_TEXT, variable=_TEXT, basin_chunk=_STEP, time_chunk=_STEP, basin_start=_STEP, basin_stop=_STEP,
    time_start=_STEP, time_stop=_STEP, state=_TEXT, stored_nbytes=_COUNT, valid_count=_COUNT, fingerprint=_TEXT,
)  # fmt: skip
RUNS = _table(
    "runs", "dataset_id variable basin start", dataset_id=_TEXT, variable=_TEXT, basin=_STEP, start=_STEP, stop=_STEP
)
WINDOWS = _table(
    "windows", "dataset_id split basin start",
    dataset_id=_TEXT, split=_TEXT, segment=_STEP, basin=_STEP, start=_STEP, stop=_STEP, num_windows=_COUNT,
)  # fmt: skip
DROPPED = _table(
    "dropped",
    "dataset_id split basin reason",
    dataset_id=_TEXT,
    split=_TEXT,
    basin=_STEP,
    reason=_TEXT,
    num_windows=_COUNT,
)
MOMENTS = _table(
    "moments", "dataset_id variable basin start",
    dataset_id=_TEXT, variable=_TEXT, basin=_STEP, start=_STEP, stop=_STEP, count=_COUNT, mean=_VALUE, m2=_VALUE,
    min=_VALUE, max=_VALUE,
)  # fmt: skip
STATS = _table(
    "stats", "scope dataset_id variable basin",
    scope=_TEXT, dataset_id=_TEXT, basin=_STEP, variable=_TEXT, count=_COUNT, mean=_VALUE, std=_VALUE,
    min=_VALUE, max=_VALUE,
)  # fmt: skip
STATICS = _table("statics", "dataset_id variable basin", dataset_id=_TEXT, basin=_STEP, variable=_TEXT, value=_VALUE)

TABLES = {
    t.name: t
    for t in (
        *(DATASETS, SEGMENTS, TIME_ORDER, PERIODS, BASINS, VARIABLES, ARRAYS, CHUNKS),
        *(RUNS, WINDOWS, DROPPED, MOMENTS, STATS, STATICS),
    )
}
"""Every table by name.

``arrays`` says what every array that the index rests on looked like, so that a change is found and named
(:class:`headrace.snapshot.ArraySnapshot`).

``time_order`` has rows only for data sets whose time axis was mended (``fix_time``). There ``chunks`` counts stored
steps, and everything else the steps of the mended axis. ``stats`` uses dataset_id '' for the global scope and basin -1
where no basin is meant.
"""
