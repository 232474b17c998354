"""Open an index: check the manifest, put its tables behind DuckDB, answer questions about it.

Only metadata is read here. One process owns the connection, and it is used before any reader thread starts.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import cftime
import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.loader.freshness import warn_if_stale
from headrace.loader.queries import run_query
from headrace.loader.sql import query
from headrace.schemas.config import SPLITS, Config, Split
from headrace.schemas.dates import EPOCH, parse_date
from headrace.schemas.errors import ConfigError, IndexFormatError, describe
from headrace.schemas.manifest import IndexManifest, read_manifest
from headrace.schemas.time_axis import TimeAxis, axis_from_rows
from headrace.schemas.views import view_statements

_NUMPY_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")


class Index:
    """An opened index; get one from :func:`open_index`.

    Parameters
    ----------
    path
        Folder of the index.
    manifest
        Its checked manifest.
    connection
        DuckDB connection in which every table is a view.
    """

    def __init__(self, path: Path, manifest: IndexManifest, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self.manifest = manifest
        self._connection = connection
        self._has_views = False

    @property
    def config(self) -> Config:
        """Resolved configuration the index was built with."""
        return self.manifest.config

    @property
    def dataset_ids(self) -> list[str]:
        """Data sets in the order of the configuration they were built from."""
        present = set(self._fetch("datasets").column("dataset_id").to_pylist())
        return [d for d in self.config.datasets if d in present]

    def windows(self, split: str) -> pa.Table:
        """Return runs of window starts for the index's own window shape.

        Parameters
        ----------
        split
            train, valid or test.

        Returns
        -------
        pyarrow.Table
            dataset_id, basin_id, start, stop, num_windows, stride; one row per maximal run of starts, in steps.

        Raises
        ------
        ConfigError
            There is no such split.
        """
        check_split(split)
        found = self._fetch("windows", split=split, dataset_ids=self.dataset_ids)
        stride = pa.array(np.full(found.num_rows, self.config.window.stride, dtype=np.int32))
        return found.select(["dataset_id", "basin_id", "start", "stop", "num_windows"]).append_column("stride", stride)

    def stats(self) -> pa.Table:
        """Return the table ``stats``: scope, dataset_id, basin, variable, count, mean, std, min, max."""
        return self._fetch("stats")

    def sql(self, text: str, **parameters: object) -> pa.Table:
        """Run a DuckDB query over the tables and the views of ``views.sql``, and return the rows.

        Parameters
        ----------
        text
            The query; ``$name`` stands for a parameter.
        parameters
            Values to bind.

        Raises
        ------
        ConfigError
            The query is empty, would write a file, or DuckDB refuses it; then the message is DuckDB's own.
        """
        return self.sql_reader(text, **parameters).read_all()

    def sql_reader(self, text: str, **parameters: object) -> pa.RecordBatchReader:
        """Run a query like :meth:`sql`, for its rows batch by batch; read all of them, or close it, before the next."""
        self._make_views()
        return run_query(self._connection, text, parameters, where=str(self.path))

    def _make_views(self) -> None:
        """Create the views of ``views.sql``, once they are wanted."""
        if self._has_views:
            return
        statements = view_statements({name: self.time_axis(name) for name in self.dataset_ids})
        try:
            self._connection.execute(statements)
        except duckdb.Error as error:
            raise IndexFormatError(_damaged(str(self.path), error)) from error
        self._has_views = True

    def time_axis(self, dataset_id: str) -> TimeAxis:
        """Return the time axis of a data set as regular segments."""
        table = self._fetch("datasets").to_pylist()
        row = next((r for r in table if r["dataset_id"] == dataset_id), None)
        if row is None:
            raise ConfigError(
                describe(
                    "no such data set",
                    where=str(self.path),
                    expected=", ".join(self.dataset_ids),
                    got=dataset_id,
                    fix="correct the name",
                )
            )
        segments = [
            (s["start"], s["stop"], parse_date(s["time_start"], row["calendar"])[0])
            for s in self._fetch("segments", dataset_id=dataset_id).to_pylist()
        ]
        return axis_from_rows(segments, row["step_seconds"], row["calendar"])

    def times(self, dataset_id: str) -> NDArray[np.datetime64] | NDArray[np.object_]:
        """Return the time of every step of a data set.

        Returns
        -------
        NDArray
            datetime64[s] [T], or cftime objects [T] for calendars NumPy does not know (noleap, 360_day, …).
        """
        axis = self.time_axis(dataset_id)
        seconds = axis.seconds()
        if axis.calendar in _NUMPY_CALENDARS:
            return seconds.astype("datetime64[s]")
        return np.asarray(cftime.num2date(seconds, EPOCH, calendar=axis.calendar), dtype=object)

    def fetch(self, name: str, **parameters: object) -> pa.Table:
        """Run one of the package's named queries with bound parameters."""
        return self._fetch(name, **parameters)

    def _fetch(self, name: str, **parameters: object) -> pa.Table:
        try:
            return self._connection.sql(query(name), params=parameters or None).to_arrow_table()
        except duckdb.ConnectionException as error:
            raise ConfigError(
                describe(
                    "index is closed",
                    where=str(self.path),
                    expected="an open index",
                    got=f"the query {name}",
                    fix="open it again, or use it inside its with block",
                )
            ) from error
        except duckdb.Error as error:
            raise IndexFormatError(_damaged(str(self.path), error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def __repr__(self) -> str:
        """Name the folder, the data sets and the digest."""
        return f"Index({str(self.path)!r}, datasets={self.dataset_ids}, digest={self.manifest.index_digest})"


def check_split(split: str) -> Split:
    """Return the split of a name; raise :class:`ConfigError` unless it is train, valid or test."""
    for known in SPLITS:
        if known == split:
            return known
    raise ConfigError(
        describe("no such split", where="split", expected=", ".join(SPLITS), got=repr(split), fix="use one of these")
    )


def _lock(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> None:
    """Leave a connection nothing of the disk but the tables (and room to sort in), for good."""
    listed = ", ".join(f"'{str(file).replace(chr(39), 2 * chr(39))}'" for file in files)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _damaged(where: str, error: Exception) -> str:
    return describe(
        "table cannot be read",
        where=where,
        expected="the Parquet tables that build-index wrote",
        got=f"{type(error).__name__}: {str(error).strip()}",
        fix="delete the damaged file and run build-index again with the same --out",
    )


def open_index(path: str | Path) -> Index:
    """Open an index for reading.

    Its stores need not be there. Where they are, a change of metadata, coordinates or attributes since the build is
    logged as one warning; a loader refuses to read such a store.

    Parameters
    ----------
    path
        Folder that ``build-index`` wrote.

    Raises
    ------
    SourceError
        There is nothing at the path.
    IndexFormatError
        It is a file, or a folder without manifest or with one of another version, or a table is missing or of another
        size.
    """
    path = Path(path)
    manifest = read_manifest(path)
    connection = duckdb.connect(":memory:")
    for name, entry in manifest.tables.items():
        file = path / entry.path
        nbytes = file.stat().st_size if file.exists() else -1
        if nbytes != entry.nbytes:
            raise IndexFormatError(
                describe(
                    "table does not fit the manifest",
                    where=str(file),
                    expected=f"{entry.nbytes} bytes",
                    got="no file" if nbytes < 0 else f"{nbytes} bytes",
                    fix="run build-index again with the same --out",
                )
            )
        try:
            connection.read_parquet(str(file)).create_view(name)
        except duckdb.Error as error:
            raise IndexFormatError(_damaged(str(file), error)) from error
    _lock(connection, [path / entry.path for entry in manifest.tables.values()])
    index = Index(path, manifest, connection)
    warn_if_stale(index)
    return index
