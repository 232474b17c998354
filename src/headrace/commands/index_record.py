"""``RUN/index.json``: which index a run was trained from, and whether another one would feed its model the same."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headrace.index_place import IndexPath, index_path
from headrace.loader import Index
from headrace.schemas.errors import ConfigError, StaleIndexError, describe
from headrace.trainer.run_folder import RunFolder, replacing

RECORD_NAME = "index.json"
_MODEL_TABLES = ("basins", "statics", "stats", "variables")
"""Tables that decide what a window looks like to the model; others may change, when the store has grown, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord:
    """What a run remembers of its index.

    Parameters
    ----------
    path
        Its folder, absolute, or its URL.
    tables
        Table → SHA-256, of those that decide what a window looks like to the model.
    """

    path: IndexPath
    tables: dict[str, str]

    @classmethod
    def of(cls, index: Index) -> Self:
        """Return the record of an open index."""
        tables = {name: index.manifest.tables[name].sha256 for name in _MODEL_TABLES}
        path = index.path.absolute() if isinstance(index.path, Path) else index.path
        return cls(path=path, tables=tables)

    @classmethod
    def read(cls, run: RunFolder) -> Self:
        """Read the record of a run.

        Raises
        ------
        ConfigError
            There is none, or it cannot be read.
        """
        place = run.path / RECORD_NAME
        try:
            content = json.loads(place.read_text(encoding="utf-8"))
            return cls(path=index_path(content["path"]), tables=dict(content["tables"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                describe(
                    "the run does not say which index it was trained from",
                    where=str(place),
                    expected="the file that train wrote there",
                    got=str(error),
                    fix="put the file back, or train again",
                )
            ) from error

    def write(self, run: RunFolder) -> None:
        """Write the record into a run's folder."""
        content = {"path": str(self.path), "tables": self.tables}
        with replacing(run.path / RECORD_NAME) as partial:
            partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def check(self, index: Index) -> None:
        """Refuse an index that would give the model other values than those it was trained on.

        Raises
        ------
        StaleIndexError
            Basins, variables, statics or training statistics differ.
        """
        now = IndexRecord.of(index).tables
        changed = [name for name in _MODEL_TABLES if now[name] != self.tables.get(name)]
        if changed:
            raise StaleIndexError(
                describe(
                    "the index is not the one the model was trained from",
                    where=str(index.path),
                    expected="the basins, variables, statics and training statistics of the run's index",
                    got=f"other {', '.join(changed)}",
                    fix="train again on this index, or give the run's own by --index",
                )
            )
