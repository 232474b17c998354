"""The tables of an index behind DuckDB: how those in a folder get there, and what any of them has to be."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import duckdb

from headrace.schemas.errors import IndexFormatError, StaleIndexError, describe
from headrace.schemas.manifest import MANIFEST_NAME, IndexManifest, read_manifest
from headrace.schemas.tables import TABLES
from headrace.schemas.views import VIEWS

NAMES = (*TABLES, *VIEWS)
"""What a query may ask: tables and the views over them."""


class Tables(Protocol):
    """Tables that queries can be asked about."""

    connection: duckdb.DuckDBPyConnection
    """In which every table that was provided is a view of its own name."""

    def refuse_rebuilt(self) -> None:
        """Raise :class:`StaleIndexError` where a build has put other tables in the place of these."""
        ...

    def read_by(self, text: str) -> set[str]:
        """Return the tables and views that have to be there for a query."""
        ...

    def provide(self, names: Iterable[str]) -> None:
        """Put tables behind the connection; those that are there already cost nothing."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class LocalTables:
    """Tables in a folder.

    Parameters
    ----------
    folder
        The index.
    manifest
        Its manifest.

    Raises
    ------
    IndexFormatError
        A table is missing, of another size, or no Parquet file.
    """

    def __init__(self, folder: Path, manifest: IndexManifest) -> None:
        self._folder, self._digest, self._seen = folder, manifest.index_digest, _stamp(folder / MANIFEST_NAME)
        self.connection = duckdb.connect(":memory:")
        for name, entry in manifest.tables.items():
            file = folder / entry.path
            entry.check_size(str(file), file.stat().st_size if file.exists() else None)
            put_behind(self.connection, name, file)
        lock(self.connection, [folder / entry.path for entry in manifest.tables.values()])

    def refuse_rebuilt(self) -> None:
        """Raise :class:`StaleIndexError` where a build wrote other tables: its answers would not fit earlier ones."""
        now = _stamp(self._folder / MANIFEST_NAME)
        if now != self._seen:
            digest = read_manifest(self._folder).index_digest
            if digest != self._digest:
                raise StaleIndexError(_rebuilt(str(self._folder), self._digest, digest))
            self._seen = now

    def read_by(self, text: str) -> set[str]:
        """Return all: they are there. Raises as :meth:`refuse_rebuilt`."""
        self.refuse_rebuilt()
        return set(NAMES)

    def provide(self, names: Iterable[str]) -> None:
        """Do nothing: they are there."""

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Return what differs when a file was replaced; None where there is none."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _rebuilt(where: str, before: str, now: str) -> str:
    return describe(
        "index was built again since it was opened", where=where, expected=f"index {before}", got=f"index {now}",
        fix="open it again with headrace.open_index, and make loaders of that",
    )  # fmt: skip


def damaged(where: str, error: Exception) -> str:
    """Return the message for a table that DuckDB cannot read."""
    return describe(
        "table cannot be read",
        where=where,
        expected="the Parquet tables that build-index wrote",
        got=f"{type(error).__name__}: {str(error).strip()}",
        fix="delete the damaged file and run build-index again with the same --out",
    )


def put_behind(connection: duckdb.DuckDBPyConnection, name: str, file: Path) -> None:
    """Make a file a view of a connection.

    Raises
    ------
    IndexFormatError
        It is no Parquet file.
    """
    try:
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet({quoted(file)})")
    except duckdb.Error as error:
        raise IndexFormatError(damaged(str(file), error)) from error


def quoted(file: Path) -> str:
    """Return a path as a text of SQL."""
    return f"'{str(file).replace(chr(39), 2 * chr(39))}'"


def lock(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> None:
    """Leave a connection nothing of the disk but the tables (and room to sort in), for good."""
    listed = ", ".join(map(quoted, files))
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
