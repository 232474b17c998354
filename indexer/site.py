"""Where an index is built: one set of steps over a folder of this machine and over an ``s3://`` URL."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from headrace.index_content import content_of
from headrace.index_place import IndexPath
from headrace.indexer.folder import check_folder, claimed, clear, refuse_foreign, sweep
from headrace.indexer.parts import settle
from headrace.indexer.write import write_index
from headrace.schemas.config import Config
from headrace.schemas.manifest import IndexManifest
from headrace.schemas.storage_config import StorageConfig


class Site(Protocol):
    """An index that this process may build."""

    parts: Path
    """Folder of this machine that holds the parts, once they are collected."""
    target: str
    """Folder or URL that workers write parts to."""

    def clear(self) -> None:
        """Remove what an earlier build left."""
        ...

    def collect(self, rewritten: Iterable[str] = ()) -> None:
        """Bring the parts that there are into :attr:`parts`; those named may have changed since the last time."""
        ...

    def settle(self, bundles: Sequence[Sequence[str]], found: dict[str, str]) -> list[str]:
        """Arrange units so that each bundle is one part, see :func:`headrace.indexer.parts.settle`."""
        ...

    def publish(
        self, tables: Mapping[str, Iterable[pa.Table]], views: str, *, config: Config, parts: Sequence[str]
    ) -> IndexManifest:
        """Write tables, views and, last, the manifest."""
        ...

    def sweep(self, keep: set[str]) -> None:
        """Remove parts that no table rests on, and what killed builders left."""
        ...


class LocalSite:
    """A folder of this machine, or of a disk that it shares.

    Parameters
    ----------
    out
        The folder.
    parts
        Its folder of parts.
    """

    def __init__(self, out: Path, parts: Path) -> None:
        self._out, self.parts, self.target = out, parts, str(parts)

    def clear(self) -> None:
        """Remove manifest, tables, views and parts."""
        clear(self._out)

    def collect(self, rewritten: Iterable[str] = ()) -> None:
        """Do nothing: workers wrote the parts here."""

    def settle(self, bundles: Sequence[Sequence[str]], found: dict[str, str]) -> list[str]:
        """Copy units together where their bundle has changed."""
        return settle(self.parts, bundles, found)

    def publish(
        self, tables: Mapping[str, Iterable[pa.Table]], views: str, *, config: Config, parts: Sequence[str]
    ) -> IndexManifest:
        """Write beside the final names, then rename."""
        return write_index(self._out, tables, views, config=config, parts=parts)

    def sweep(self, keep: set[str]) -> None:
        """Remove parts that are not to be kept."""
        sweep(self.parts, keep)


def check_place(out: IndexPath, storage: StorageConfig) -> None:
    """Refuse a place that holds something else than an index, before anything is written.

    Raises
    ------
    ConfigError
        There is a file, or other content.
    SourceError
        The URL cannot be read.
    """
    if isinstance(out, Path):
        check_folder(out)
    else:
        refuse_foreign(out, content_of(out, storage))


@contextmanager
def claimed_site(out: IndexPath, storage: StorageConfig) -> Iterator[Site]:
    """Hold a place against a second builder.

    Raises
    ------
    ConfigError
        It cannot be written, or another process builds there.
    SourceError
        The URL cannot be reached.
    """
    if isinstance(out, Path):
        with claimed(out) as parts:
            yield LocalSite(out, parts)
    else:
        from headrace.indexer.remote_site import claimed_url  # who builds on a disk loads no client of object storage

        with claimed_url(out, storage) as site:
            yield site
