"""Open an index: check the manifest, put its tables behind DuckDB, answer questions about it.

Only metadata is read here. One process owns the connection; its threads may ask at once.
"""

import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import cftime
import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.index_content import read_index_manifest, remote_folder
from headrace.index_place import IndexPath, index_path
from headrace.loader.coverage_plot import plot_coverage
from headrace.loader.fetched_tables import FetchedTables
from headrace.loader.freshness import warn_if_stale
from headrace.loader.notebook import index_html
from headrace.loader.queries import run_query
from headrace.loader.small_answers import SmallAnswers
from headrace.loader.sql import query
from headrace.loader.tables import LocalTables, Tables, damaged
from headrace.loader.view_set import ViewSet
from headrace.open_store import OpenedStores
from headrace.schemas.config import SPLITS, Config, Split
from headrace.schemas.dates import EPOCH, parse_date
from headrace.schemas.errors import ConfigError, IndexFormatError, describe
from headrace.schemas.manifest import IndexManifest
from headrace.schemas.storage_config import StorageConfig
from headrace.schemas.time_axis import TimeAxis, axis_from_rows
from headrace.schemas.views import VIEWS, view_statements

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMPY_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")


class Index:
    """An opened index; get one from :func:`open_index`.

    Parameters
    ----------
    path
        Folder of the index; its URL as text where it lies in object storage.
    manifest
        Its checked manifest.
    tables
        Its tables, behind DuckDB.

    Attributes
    ----------
    warned
        What loaders of this index have warned of, so that each thing is said once.
    """

    def __init__(self, path: IndexPath, manifest: IndexManifest, tables: Tables) -> None:
        self.path = path
        self.manifest = manifest
        self._tables = tables
        self._views: ViewSet | None = None
        self._answers = SmallAnswers()
        self._lock = threading.RLock()
        self.stores = OpenedStores()
        self.warned: set[str] = set()

    @property
    def config(self) -> Config:
        """Resolved configuration the index was built with."""
        return self.manifest.config

    @property
    def dataset_ids(self) -> list[str]:
        """Data sets in the order of the configuration they were built from."""
        present = set(self.fetch("datasets").column("dataset_id").to_pylist())
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
        found = self.fetch("windows", split=split, dataset_ids=self.dataset_ids)
        stride = pa.array(np.full(found.num_rows, self.config.window.stride, dtype=np.int32))
        return found.select(["dataset_id", "basin_id", "start", "stop", "num_windows"]).append_column("stride", stride)

    def summary(self) -> pa.Table:
        """Return basins, windows and dropped windows per data set and split, with first and last day of the targets."""
        return self.fetch("summary", datasets=self.dataset_ids, splits=list(SPLITS))

    def stats(self) -> pa.Table:
        """Return the table ``stats``: scope, dataset_id, basin, variable, count, mean, std, min, max."""
        return self.fetch("stats")

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
        """Run a query like :meth:`sql`, for its rows batch by batch, as they are asked for."""
        self._provide(text)
        return run_query(self._tables.connection, text, parameters, where=str(self.path))

    def _provide(self, text: str) -> None:
        """Put the tables and views that a query reads where it finds them."""
        with self._lock:  # threads that ask at once wait for the one that fetches and creates
            names = self._tables.read_by(text)
            try:
                if names & set(VIEWS):
                    if self._views is None:
                        axes = {name: self.time_axis(name) for name in self.dataset_ids}
                        self._views = ViewSet(self._tables.connection, view_statements(axes))
                    names = self._views.below(names)
                self._tables.provide(names)
                if self._views is not None:
                    self._views.create(names)
            except duckdb.Error as error:
                raise IndexFormatError(damaged(str(self.path), error)) from error

    def time_axis(self, dataset_id: str) -> TimeAxis:
        """Return the time axis of a data set as regular segments."""
        table = self.fetch("datasets").to_pylist()
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
            for s in self.fetch("segments", dataset_id=dataset_id).to_pylist()
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

    def plot_coverage(
        self, dataset: str | None = None, variable: str | None = None, ax: "Axes | None" = None
    ) -> "Axes":
        """Draw the observed share of each basin (rows) and calendar year (columns) as a heat map.

        Parameters
        ----------
        dataset
            None draws all data sets, each as a band.
        variable
            An input or target; None takes all together. Data sets that lack it are left out.
        ax
            Axes of Matplotlib to draw into; None makes a figure.

        Raises
        ------
        ConfigError
            There is no such data set or variable.
        """
        return plot_coverage(self, dataset, variable, ax)

    def fetch(self, name: str, **parameters: object) -> pa.Table:
        """Run one of the package's named queries with bound parameters; small answers are kept."""
        self._tables.refuse_rebuilt()
        return self._answers.get(name, parameters, self._ask)

    def _ask(self, name: str, parameters: dict[str, object]) -> pa.Table:
        text = query(name)
        with self._lock:
            self._tables.provide(self._tables.read_by(text))
        try:
            with self._tables.connection.cursor() as own:  # an open result owns its connection
                return own.sql(text, params=parameters or None).to_arrow_table()
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
            raise IndexFormatError(damaged(str(self.path), error)) from error

    def close(self) -> None:
        """Close the connection; of an index at a URL, remove what was fetched."""
        self._tables.close()
        self._answers.clear()

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
        return f"Index({str(self.path)!r}, datasets={list(self.config.datasets)}, digest={self.manifest.index_digest})"

    def _repr_html_(self) -> str:
        """Show a notebook the same, and the windows of each data set and split."""
        return index_html(self)


def check_split(split: str) -> Split:
    """Return the split of a name; raise :class:`ConfigError` unless it is train, valid or test."""
    for known in SPLITS:
        if known == split:
            return known
    raise ConfigError(
        describe("no such split", where="split", expected=", ".join(SPLITS), got=repr(split), fix="use one of these")
    )


def open_index(path: str | Path, storage: StorageConfig | None = None, *, ask_buckets: bool = True) -> Index:
    """Open an index for reading.

    Its stores need not be there. Where they are, a change of metadata, coordinates or attributes since the build is
    logged as one warning; a loader refuses to read such a store.

    Of an index at a URL a table is fetched, whole, once something asks for it; what was fetched goes on closing.

    Parameters
    ----------
    path
        Folder that ``build-index`` wrote, or its ``s3://`` URL.
    storage
        How to reach a URL; None takes what the environment and ``~/hydro_setting.yml`` say.
    ask_buckets
        Whether to look for such a change in stores that lie in buckets; who wants tables alone need not wait for that.

    Raises
    ------
    SourceError
        There is nothing at the path, or the URL cannot be read.
    IndexFormatError
        It is a file, or a folder without manifest or with another version's, or a table is missing or of another size.
    """
    place = index_path(path)
    manifest = read_index_manifest(place, storage)
    if isinstance(place, Path):
        index = Index(place, manifest, LocalTables(place, manifest))
    else:
        index = Index(place, manifest, FetchedTables(remote_folder(place, storage), manifest))
    try:
        warn_if_stale(index, ask_buckets=ask_buckets)
    except BaseException:
        index.close()
        raise
    return index
