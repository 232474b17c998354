"""``manifest.json``: what an index holds. It is written last; a folder without it is no index.

The manifest carries the resolved configuration, the tables with their sizes and digests, and one digest of the whole
that plans and checkpoints refer to. It holds no wall time, so equal inputs give equal bytes.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.schemas.config import Config
from headrace.schemas.errors import IndexFormatError, SourceError, describe
from headrace.schemas.tables import FORMAT_VERSION, TABLES

MANIFEST_NAME = "manifest.json"
PARTS_FOLDER = "parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """One table file: rows, bytes and SHA-256 of its content."""

    path: str
    num_rows: int
    nbytes: int
    sha256: str

    def check_size(self, where: str, nbytes: int | None) -> None:
        """Refuse a file of another size; None is one that is not there.

        Raises
        ------
        IndexFormatError
            It is not the table that was written.
        """
        if nbytes != self.nbytes:
            got = "no file" if nbytes is None else f"{nbytes} bytes"
            raise IndexFormatError(_misfit(where, f"{self.nbytes} bytes", got))

    def check_content(self, where: str, content: bytes) -> None:
        """Refuse other bytes; see :meth:`check_size`."""
        self.check_size(where, len(content))
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise IndexFormatError(_misfit(where, f"SHA-256 {self.sha256}", found))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexManifest:
    """Content of the manifest.

    Parameters
    ----------
    config
        Resolved configuration the index was built with; never holds a secret.
    tables
        Table name → file entry.
    parts
        Names of the part files the tables were folded from.
    """

    config: Config
    tables: dict[str, TableEntry]
    parts: tuple[str, ...]

    @property
    def index_digest(self) -> str:
        """16 hex digits over the content of all tables; the same for equal tables on any machine."""
        text = json.dumps({name: entry.sha256 for name, entry in sorted(self.tables.items())}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the manifest as text. The configuration keeps its order: it is the order of the model's columns."""
        data: dict[str, Any] = {
            "format": "headrace-index",
            "format_version": FORMAT_VERSION,
            "index_digest": self.index_digest,
            "config": self.config.as_dict(),
            "tables": {name: asdict(entry) for name, entry in sorted(self.tables.items())},
            "parts": sorted(self.parts),
        }
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> "IndexManifest":
        """Read a manifest.

        Raises
        ------
        IndexFormatError
            It is not a manifest, of another format version, or lacks a table.
        """
        fix = "build the index again with this Headrace: headrace build-index CONFIG --out DIR"
        try:
            data = json.loads(text)
            kind, version = data["format"], data["format_version"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise IndexFormatError(
                describe(
                    "manifest cannot be read", where=where, expected="the manifest of an index", got=str(error), fix=fix
                )
            ) from error
        if kind != "headrace-index" or version != FORMAT_VERSION:
            raise IndexFormatError(
                describe(
                    "index has another format",
                    where=where,
                    expected=f"headrace-index version {FORMAT_VERSION}",
                    got=f"{kind} version {version}",
                    fix=fix,
                )
            )
        try:
            tables = {name: TableEntry(**entry) for name, entry in data["tables"].items()}
            manifest = cls(config=Config.model_validate(data["config"]), tables=tables, parts=tuple(data["parts"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise IndexFormatError(
                describe(
                    "manifest is damaged", where=where, expected="config, tables and parts", got=str(error), fix=fix
                )
            ) from error
        lacking = sorted(set(TABLES) - set(tables))
        elsewhere = [entry.path for entry in tables.values() if Path(entry.path).name != entry.path]
        if lacking or elsewhere or manifest.index_digest != data.get("index_digest"):
            got = f"no {', '.join(lacking)}" if lacking else "a digest that does not fit the tables"
            got = f"a table outside the folder, {elsewhere[0]!r}" if elsewhere else got
            raise IndexFormatError(
                describe("manifest is damaged", where=where, expected="every table and its digest", got=got, fix=fix)
            )
        return manifest


def read_manifest(folder: Path) -> IndexManifest:
    """Read the manifest of an index.

    Raises
    ------
    SourceError
        There is nothing at the path.
    IndexFormatError
        There is something else: a file, a folder without a readable manifest, or an index of another version.
    """
    if not folder.exists():
        raise absent_index(str(folder))
    if not folder.is_dir():
        raise IndexFormatError(
            describe(
                "this is no index",
                where=str(folder),
                expected="a folder written by build-index",
                got="a file",
                fix="give the folder that build-index wrote (its --out)",
            )
        )
    path = folder / MANIFEST_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise unfinished_index(str(folder), [p.name for p in folder.iterdir()]) from error
    except OSError as error:
        raise _unreadable(str(path), error) from error
    return parse_manifest(content, str(path))


def parse_manifest(content: bytes, where: str) -> IndexManifest:
    """Read the bytes of a manifest.

    Raises
    ------
    IndexFormatError
        They are not a manifest of this version.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(where, error) from error
    return IndexManifest.from_json(text, where)


def absent_index(where: str) -> SourceError:
    """Return the error for a path or URL where there is nothing."""
    return SourceError(
        describe(
            "index not found",
            where=where,
            expected="a folder written by build-index",
            got="nothing there",
            fix=f"correct the path, or build it: headrace build-index CONFIG --out {where}",
        )
    )


def unfinished_index(where: str, names: Sequence[str]) -> IndexFormatError:
    """Return the error for a folder without a manifest.

    Parameters
    ----------
    where
        Its path or URL.
    names
        What lies directly in it.
    """
    listed = ", ".join(sorted(names)[:6]) or "nothing"
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return IndexFormatError(
        describe(
            "folder is no finished index",
            where=where,
            expected=f"{MANIFEST_NAME}, which build-index writes last",
            got=f"no manifest; the folder holds {listed}{more}",
            fix="run build-index again with the same --out; what is scanned so far is kept"
            if PARTS_FOLDER in names
            else "give the folder that build-index wrote, or build one: headrace build-index CONFIG --out DIR",
        )
    )


def _unreadable(where: str, error: Exception) -> IndexFormatError:
    return IndexFormatError(
        describe(
            "manifest cannot be read",
            where=where,
            expected="the manifest of an index",
            got=f"{type(error).__name__}: {error}",
            fix="mend its rights, or run build-index again with the same --out",
        )
    )


def _misfit(where: str, expected: str, got: str) -> str:
    return describe(
        "table does not fit the manifest",
        where=where,
        expected=expected,
        got=got,
        fix="run build-index again with the same --out; if one has run since the index was opened, open it again",
    )
