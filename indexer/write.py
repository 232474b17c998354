"""Write an index: every table beside its final name first, then all renamed, the manifest last.

Without a manifest a folder is no index, so nothing half-written is ever taken for one.
"""

import hashlib
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa

from headrace.indexer.folder import VIEWS_NAME
from headrace.indexer.output import sync_file, written
from headrace.indexer.table_file import write_table
from headrace.schemas.config import Config
from headrace.schemas.manifest import MANIFEST_NAME, IndexManifest, TableEntry
from headrace.schemas.tables import TABLES

_WRITERS: Final = 2
"""Tables encoded at once."""


def write_index(
    out: Path, tables: Mapping[str, Iterable[pa.Table]], views: str, *, config: Config, parts: Sequence[str]
) -> IndexManifest:
    """Write tables, given as stretches of rows, views and manifest into ``out`` and return the manifest.

    An index that is there already, byte for byte, is left alone: whoever opens it meanwhile finds it.
    """
    staged = {name: out / f"{name}.new.tmp" for name in (*(f"{table}.parquet" for table in tables), VIEWS_NAME)}
    try:
        entries = _stage(tables, views, staged)
    except BaseException:
        _remove(staged.values())
        raise
    manifest = IndexManifest(config=config, tables=entries, parts=tuple(sorted(parts)))
    text = manifest.to_json()
    if _stands(out, manifest, {MANIFEST_NAME: text, VIEWS_NAME: views}):
        _remove(staged.values())
        return manifest
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    for name, path in staged.items():
        path.replace(out / name)
    write_text(out / MANIFEST_NAME, text)
    _sync_folder(out)
    return manifest


def _stage(tables: Mapping[str, Iterable[pa.Table]], views: str, staged: Mapping[str, Path]) -> dict[str, TableEntry]:
    """Write tables and views, and wait until all outlive the machine; nothing of this goes on after the call."""
    turn = Lock()
    # Files that wait for the disk together wait hardly longer than one of them.
    with ThreadPoolExecutor(max_workers=len(staged)) as waiting, ThreadPoolExecutor(max_workers=_WRITERS) as writing:

        def write(name: str) -> tuple[TableEntry, Future[None]]:
            path = staged[f"{name}.parquet"]
            with closing(_in_turn(tables[name], turn)) as stretches:  # a failure must not keep the turn
                num_rows = write_table(TABLES[name].schema, stretches, path)
            synced = waiting.submit(sync_file, path)
            nbytes = path.stat().st_size
            entry = TableEntry(path=f"{name}.parquet", num_rows=num_rows, nbytes=nbytes, sha256=_sha256(path))
            return entry, synced

        try:
            asked = {name: writing.submit(write, name) for name in tables}
            with written(staged[VIEWS_NAME]) as file:
                file.write(views.encode())
            outcomes = {name: outcome.result() for name, outcome in asked.items()}
            for _, synced in outcomes.values():
                synced.result()
        finally:
            writing.shutdown(cancel_futures=True)
    return {name: entry for name, (entry, _) in outcomes.items()}


def _in_turn(stretches: Iterable[pa.Table], turn: Lock) -> Generator[pa.Table, None, None]:
    """Yield all, but what comes after the first only while no other table does: large tables are made one by one."""
    rest = iter(stretches)
    yield from islice(rest, 1)
    with turn:
        yield from rest


def _stands(out: Path, manifest: IndexManifest, texts: Mapping[str, str]) -> bool:
    """Return whether texts and whole tables are there as they would be written."""
    try:
        return all((out / name).read_bytes() == text.encode() for name, text in texts.items()) and all(
            _sha256(out / entry.path) == entry.sha256 for entry in manifest.tables.values()
        )
    except OSError:
        return False


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all; it outlives the machine then."""
    with written(path) as file:
        file.write(text.encode())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
