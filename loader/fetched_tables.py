"""Tables of an index at a URL: each is fetched when a query first asks for it, so that none comes that nobody needs.

DuckDB itself reads files of this machine only: its extension for object storage has to be downloaded, and file systems
of Python behind it wait for each other under threads.
"""

import logging
import os
import weakref
from collections.abc import Iterable
from pathlib import Path

import duckdb

from headrace.loader.named_tables import names_in
from headrace.loader.tables import NAMES, lock, put_behind
from headrace.objects import ObjectFolder
from headrace.private_folder import PrivateFolder
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.manifest import IndexManifest
from headrace.schemas.tables import TABLES

logger = logging.getLogger(__name__)


class FetchedTables:
    """Tables at a URL, fetched whole, once, into a private folder of this machine.

    The folder goes when the tables are closed, at the latest when the process ends, after a kill with the next start.

    Parameters
    ----------
    folder
        The index.
    manifest
        Its manifest.
    """

    def __init__(self, folder: ObjectFolder, manifest: IndexManifest) -> None:
        self.connection = duckdb.connect(":memory:")
        self._empty = duckdb.connect(":memory:", config={"threads": 1})
        self._folder = folder
        self._waiting = {name: manifest.tables[name] for name in TABLES}
        folder_here = PrivateFolder("index")
        self._place = folder_here.path
        self._remove = weakref.finalize(self, _remove_own, folder_here, os.getpid())
        lock(self.connection, [self._file(name) for name in TABLES])
        lock(self._empty, [])  # DuckDB opens the files that a query reads to say which tables it names

    def refuse_rebuilt(self) -> None:
        """Do nothing: a table that does not fit the manifest is refused when it is fetched."""

    def read_by(self, text: str) -> set[str]:
        """Return the tables and views that a query names."""
        return names_in(self._empty, text, NAMES)

    def provide(self, names: Iterable[str]) -> None:
        """Fetch tables.

        Raises
        ------
        IndexFormatError
            An object is gone, or not the one that the manifest means.
        SourceError
            It cannot be read.
        ConfigError
            There is no space to keep it.
        """
        for name in sorted(set(names) & self._waiting.keys()):
            if not self._remove.alive:
                return  # closed: the query says so
            entry, where = self._waiting[name], f"{self._folder.url}/{self._waiting[name].path}"
            try:
                content = self._folder.read(entry.path)
            except FileNotFoundError:
                entry.check_size(where, None)
                raise
            entry.check_content(where, content)
            logger.debug("fetched table %s: %d bytes", name, len(content))
            self._keep(name, content)
            put_behind(self.connection, name, self._file(name))
            del self._waiting[name]

    def close(self) -> None:
        """Close the connection and remove what was fetched."""
        self.connection.close()
        self._empty.close()
        self._remove()

    def _keep(self, name: str, content: bytes) -> None:
        try:
            self._file(name).write_bytes(content)
        except OSError as error:
            raise ConfigError(
                describe(
                    "table of an index in a bucket cannot be kept here",
                    where=str(self._file(name)),
                    expected=f"space for {len(content):,} bytes",
                    got=error.strerror or str(error),
                    fix="free space, or let the environment variable TMPDIR name a folder of a larger disk",
                )
            ) from error

    def _file(self, name: str) -> Path:
        return self._place / f"{name}.parquet"


def _remove_own(folder: PrivateFolder, pid: int) -> None:
    """Remove a folder, unless this is a forked child: the parent still reads it."""
    if os.getpid() == pid:
        folder.remove()
