"""Build an index at an ``s3://`` URL: parts are kept there as workers write them, tables are made here and then sent.

A put is whole or not at all, and the manifest is the last one, so nothing half-written is ever taken for an index.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from headrace.indexer.claim import Claim, seconds_to_tidy
from headrace.indexer.folder import VIEWS_NAME
from headrace.indexer.output import written
from headrace.indexer.parts import settle
from headrace.indexer.write import write_index
from headrace.objects import ObjectFolder, ObjectStat, open_folder
from headrace.objects.at_once import AFTER_STOP_SECONDS
from headrace.objects.limits import request_pool
from headrace.private_folder import PrivateFolder
from headrace.schemas.config import Config
from headrace.schemas.manifest import MANIFEST_NAME, PARTS_FOLDER, IndexManifest
from headrace.schemas.storage_config import StorageConfig
from headrace.schemas.tables import TABLES

_LARGE = 16 << 20
"""Bytes from which on tables are sent one after another, for each is in memory then."""


class RemoteSite:
    """An index at a URL, with the copy of its parts that tables are folded from.

    Parameters
    ----------
    folder
        The index.
    claim
        What holds it against other builders.
    local
        Private folder of this machine.
    storage
        How requests are made.
    """

    def __init__(self, folder: ObjectFolder, claim: Claim, local: Path, storage: StorageConfig) -> None:
        self._folder, self._claim, self._local, self._storage = folder, claim, local, storage
        self.parts = local / PARTS_FOLDER
        self.parts.mkdir()
        self.target = f"{folder.url}/{PARTS_FOLDER}"

    def clear(self) -> None:
        """Remove manifest, then tables, views and parts."""
        self._folder.delete(MANIFEST_NAME)
        names = [VIEWS_NAME, *(f"{name}.parquet" for name in TABLES)]
        self._for_each(self._folder.delete, names + [f"{PARTS_FOLDER}/{name}" for name in self._remote_parts()])

    def collect(self, rewritten: Iterable[str] = ()) -> None:
        """Fetch parts that are not here yet, and those named."""
        for name in rewritten:
            (self.parts / name).unlink(missing_ok=True)
        self._for_each(self._fetch, [name for name in self._remote_parts() if not (self.parts / name).exists()])

    def settle(self, bundles: Sequence[Sequence[str]], found: dict[str, str]) -> list[str]:
        """Copy units together where their bundle has changed, and send the new parts."""
        names = settle(self.parts, bundles, found)
        copied = [n for n, keys in zip(names, bundles, strict=True) if any(found[key] != n for key in keys)]
        self._for_each(self._send, [f"{PARTS_FOLDER}/{name}" for name in copied])
        return names

    def publish(
        self, tables: Mapping[str, Iterable[pa.Table]], views: str, *, config: Config, parts: Sequence[str]
    ) -> IndexManifest:
        """Write the index here, then send it: what was there is no index from the first table to the manifest.

        Of an index with the same manifest only files are sent that are not there, or may be others.
        """
        manifest = write_index(self._local, tables, views, config=config, parts=parts)
        self._claim.check()
        stands = self._has_same_manifest()
        if not stands:
            self._folder.delete(MANIFEST_NAME)
        sizes = {VIEWS_NAME: 0, **{entry.path: entry.nbytes for entry in manifest.tables.values()}}
        there = self._folder.stats() if stands else {}
        wanted = [name for name in sizes if name not in there or not self._is_same(name, there[name])]
        self._for_each(self._send, [name for name in wanted if sizes[name] < _LARGE])
        for name in wanted:
            if sizes[name] >= _LARGE:
                self._send(name)
        if not stands:
            self._claim.check()
            self._send(MANIFEST_NAME)
        return manifest

    def _has_same_manifest(self) -> bool:
        try:
            return self._folder.read(MANIFEST_NAME) == (self._local / MANIFEST_NAME).read_bytes()
        except FileNotFoundError:
            return False

    def _is_same(self, name: str, there: ObjectStat) -> bool:
        """Return whether an object is a file's copy: most servers give the MD5 of what was put in one piece."""
        with (self._local / name).open("rb") as file:
            digest = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False))
            return there.fingerprint.lower() == f"{file.tell()}:{digest.hexdigest()}"

    def sweep(self, keep: set[str]) -> None:
        """Remove parts that are not to be kept."""
        spare = [f"{PARTS_FOLDER}/{name}" for name in self._remote_parts() if name not in keep]
        self._for_each(self._folder.delete, spare)

    def _remote_parts(self) -> list[str]:
        names = (name.removeprefix(f"{PARTS_FOLDER}/") for name in self._claim.parts())
        return [name for name in names if name.endswith(".parquet") and "/" not in name]

    def _fetch(self, name: str) -> None:
        try:
            content = self._folder.read(f"{PARTS_FOLDER}/{name}")
        except FileNotFoundError:
            return  # removed since it was listed: its units count as not scanned
        with written(self.parts / name, sync=False) as file:
            file.write(content)

    def _send(self, name: str) -> None:
        self._folder.write(name, (self._local / name).read_bytes())

    def _for_each(self, do: Callable[[str], None], names: Iterable[str]) -> None:
        asked = [request_pool(self._storage).submit(do, name) for name in names]
        seconds = None
        try:
            for answer in asked:
                answer.result()
        except KeyboardInterrupt:
            seconds = AFTER_STOP_SECONDS
            raise
        finally:  # none may write once the claim is released
            for answer in asked:
                answer.cancel()
            if wait(asked, seconds).not_done:
                self._claim.leave()


@contextmanager
def claimed_url(url: str, storage: StorageConfig) -> Iterator[RemoteSite]:
    """Hold an index at a URL against a second builder.

    Raises
    ------
    ConfigError
        Another process builds there.
    SourceError
        The URL cannot be reached or written.
    """
    folder = open_folder(url, storage)
    with PrivateFolder("build") as local:
        claim = Claim(folder)
        claim.take()
        seconds = None
        try:
            yield RemoteSite(folder, claim, local, storage)
        except BaseException as error:
            seconds = seconds_to_tidy(error)
            raise
        finally:
            claim.release(seconds)
