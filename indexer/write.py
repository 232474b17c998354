"""Write an index: every table beside its final name first, then all renamed, the manifest last.

Without a manifest a folder is no index, so nothing half-written is ever taken for one.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from headrace.indexer.folder import VIEWS_NAME
from headrace.indexer.output import written
from headrace.indexer.table_file import write_table
from headrace.schemas.config import Config
from headrace.schemas.manifest import MANIFEST_NAME, IndexManifest, TableEntry
from headrace.schemas.tables import TABLES


def write_index(
    out: Path, tables: Mapping[str, Iterable[pa.Table]], views: str, *, config: Config, parts: Sequence[str]
) -> IndexManifest:
    """Write tables, given as stretches of rows, views and manifest into ``out`` and return the manifest.

    An index that is there already, byte for byte, is left alone: whoever opens it meanwhile finds it.
    """
    staged = {name: out / f"{name}.parquet.new.tmp" for name in tables}
    entries = {}
    try:
        for name, stretches in tables.items():
            num_rows = write_table(TABLES[name].schema, stretches, staged[name])
            entries[name] = TableEntry(
                path=f"{name}.parquet",
                num_rows=num_rows,
                nbytes=staged[name].stat().st_size,
                sha256=_sha256(staged[name]),
            )
    except BaseException:
        _remove(staged.values())
        raise
    manifest = IndexManifest(config=config, tables=entries, parts=tuple(sorted(parts)))
    if _stands(out, manifest, views):
        _remove(staged.values())
        return manifest
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    for name, path in staged.items():
        path.replace(out / f"{name}.parquet")
    write_text(out / VIEWS_NAME, views)
    write_text(out / MANIFEST_NAME, manifest.to_json())
    _sync_folder(out)
    return manifest


def _stands(out: Path, manifest: IndexManifest, views: str) -> bool:
    """Return whether manifest, views and whole tables are there as they would be written."""
    texts = {MANIFEST_NAME: manifest.to_json(), VIEWS_NAME: views}
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
    """Write a text file whole or not at all."""
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
