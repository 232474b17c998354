"""Part files: the results of the scan, one file per task, one row per unit.

A file with a part's name is whole. Its name digests the keys inside. Rows are keyed by store row, not by the position
of a configured basin.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.indexer.fingerprint import digest
from headrace.indexer.output import written
from headrace.indexer.read_unit import UnitResult
from headrace.objects import ObjectFolder
from headrace.schemas.errors import SourceError, describe

_ROW, _NUM, _VALUE, _TEXT = pa.int32(), pa.int64(), pa.float64(), pa.string()
_CHUNK = pa.struct(
    [
        ("basin_chunk", _ROW),
        ("time_chunk", _ROW),
        ("basin_start", _ROW),
        ("basin_stop", _ROW),
        ("time_start", _ROW),
        ("time_stop", _ROW),
        ("state", _TEXT),
        ("stored_nbytes", _NUM),
        ("valid_count", _NUM),
        ("fingerprint", _TEXT),
    ]
)
_RUN = pa.struct([("row", _ROW), ("start", _ROW), ("stop", _ROW)])
_MOMENTS = pa.struct(
    [
        ("row", _ROW),
        ("start", _ROW),
        ("stop", _ROW),
        ("count", _NUM),
        ("mean", _VALUE),
        ("m2", _VALUE),
        ("min", _VALUE),
        ("max", _VALUE),
    ]
)
PART_SCHEMA = pa.schema(
    [
        ("key", _TEXT),
        ("has_error", pa.bool_()),
        ("chunks", pa.list_(_CHUNK)),
        ("runs", pa.list_(_RUN)),
        ("moments", pa.list_(_MOMENTS)),
    ],
    metadata={b"headrace.part": b"1"},
)


def part_name(keys: Iterable[str]) -> str:
    """Return the file name of the part that holds exactly these units, in this order."""
    return f"{digest(*keys)}.parquet"


def to_table(results: Sequence[UnitResult]) -> pa.Table:
    """Return results as rows of a part."""
    columns = {
        "key": pa.array([r.unit.key for r in results], _TEXT),
        "has_error": pa.array([any(c.state == "error" for c in r.chunks) for r in results], pa.bool_()),
        "chunks": _lists(_CHUNK, [_chunk_columns(r) for r in results]),
        "runs": _lists(_RUN, [[r.scanned.runs.row, r.scanned.runs.start, r.scanned.runs.stop] for r in results]),
        "moments": _lists(_MOMENTS, [_moment_columns(r) for r in results]),
    }
    return pa.Table.from_arrays([columns[name] for name in PART_SCHEMA.names], schema=PART_SCHEMA)


def _lists(kind: pa.StructType, rows: Sequence[Sequence[Any]]) -> pa.ListArray:
    """Build a list<struct> column from the columns of each row's list."""
    joined = []
    for i in range(kind.num_fields):
        values: Any = np.concatenate([columns[i] for columns in rows])
        joined.append(pa.array(values.tolist() if kind.field(i).type == _TEXT else values, kind.field(i).type))
    offsets = np.append(0, np.cumsum([len(columns[0]) for columns in rows])).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(joined, fields=list(kind)))


def _chunk_columns(result: UnitResult) -> list[Any]:
    rows = [
        (c.basin_chunk, c.time_chunk, *c.rows, *c.steps, c.state, c.stored_nbytes, c.valid_count, c.fingerprint)
        for c in result.chunks
    ]
    return list(zip(*rows, strict=True))


def _moment_columns(result: UnitResult) -> list[Any]:
    unit, m = result.unit, result.scanned.moments
    num_rows = unit.rows[1] - unit.rows[0]
    cuts = np.array(unit.cuts)
    row = np.repeat(np.arange(*unit.rows), cuts.size - 1)
    return [row, np.tile(cuts[:-1], num_rows), np.tile(cuts[1:], num_rows), m.count, m.mean, m.m2, m.low, m.high]


def write_part(folder: Path | ObjectFolder, table: pa.Table) -> str:
    """Write rows as the part of their keys, whole or not at all; return its name."""
    name = part_name(table["key"].to_pylist())
    if isinstance(folder, Path):
        with written(folder / name) as file:
            _encode(table, file)
    else:
        sink = pa.BufferOutputStream()
        _encode(table, sink)
        folder.write(name, sink.getvalue().to_pybytes())
    return name


def _encode(table: pa.Table, file: Any) -> None:
    # Read once or twice and never searched, so nothing is spent on being small or on statistics.
    pq.write_table(
        table,
        file,
        compression="lz4",
        row_group_size=1 << 20,
        version="2.6",
        data_page_version="1.0",
        use_dictionary=["chunks.list.element.state"],
        write_statistics=False,
    )


def finished_units(folder: Path, *, accept_errors: bool) -> dict[str, str]:
    """Return key → part name of every unit that a readable part holds.

    Parameters
    ----------
    folder
        The folder ``parts``.
    accept_errors
        Whether units with an undecodable chunk count; they do only while the policy is to take it as missing.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.parquet")):
        try:
            table = _read(path, ["key", "has_error"])
        except (pa.ArrowException, OSError, KeyError):
            continue  # cut short or foreign: its units are scanned again
        for key, has_error in zip(table["key"].to_pylist(), table["has_error"].to_pylist(), strict=True):
            if accept_errors or not has_error:
                found.setdefault(key, path.name)
    return found


def read_units(folder: Path, names: Iterable[str]) -> pa.Table:
    """Return the rows of the named parts."""
    tables = [_read(folder / name) for name in names]
    return pa.concat_tables(tables) if tables else PART_SCHEMA.empty_table()


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a part in this thread: what Arrow does to read many large files at once takes longer than the file."""
    with pq.ParquetFile(path) as file:
        return file.read(columns=columns, use_threads=False)


def settle(folder: Path, bundles: Sequence[Sequence[str]], found: dict[str, str]) -> list[str]:
    """Arrange the units so that each bundle of keys is one part; return the parts' names.

    After an incremental scan the units of a bundle lie in several parts; they are copied together, so that the parts
    of an index do not depend on its history.

    Raises
    ------
    SourceError
        A unit is in no part, because a worker of a cluster wrote it to a disk of its own.
    """
    lacking = [key for keys in bundles for key in keys if key not in found]
    if lacking:
        raise SourceError(
            describe(
                "parts that workers wrote are not here",
                where=str(folder),
                expected="the folder to be the same one for the client and all workers",
                got=f"{len(lacking)} units without a part",
                fix="give an --out on a disk that the cluster shares",
            )
        )
    names = []
    for keys in bundles:
        name = part_name(keys)
        names.append(name)
        if all(found[key] == name for key in keys):
            continue
        sources = sorted({found[key] for key in keys})
        tables = [read_units(folder, [source]) for source in sources]
        rows = pa.concat_tables(tables)
        origin = np.repeat(np.arange(len(sources)), [t.num_rows for t in tables]).tolist()
        place = {(key, sources[o]): i for i, (key, o) in enumerate(zip(rows["key"].to_pylist(), origin, strict=True))}
        write_part(folder, rows.take(pa.array([place[key, found[key]] for key in keys])))
    return names
