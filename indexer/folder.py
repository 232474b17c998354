"""The output folder: whose it is, that one builder at a time works in it, and what is cleared away."""

import errno
import fcntl
import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.manifest import MANIFEST_NAME, PARTS_FOLDER
from headrace.schemas.tables import TABLES

VIEWS_NAME = "views.sql"
_LOCK_NAME = "lock"
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""What parallel file systems of clusters answer where locks are switched off."""
_log = logging.getLogger(__name__)


def check_folder(out: Path) -> None:
    """Refuse a folder that holds something else than an index, before anything is written.

    Raises
    ------
    ConfigError
        ``out`` is a file, or a folder with other content.
    """
    if out.exists() and not out.is_dir():
        raise ConfigError(
            describe(
                "output is a file",
                where=str(out),
                expected="a folder, or nothing yet",
                got="a file",
                fix="choose another --out",
            )
        )
    if not out.is_dir():
        return
    refuse_foreign(str(out), sorted(p.name for p in out.iterdir()))


def refuse_foreign(where: str, names: Sequence[str]) -> None:
    """Refuse a folder whose content is not an index's.

    Parameters
    ----------
    where
        Its path or URL.
    names
        What lies directly in it, sorted.

    Raises
    ------
    ConfigError
        There is something, and neither a manifest nor parts.
    """
    if names and MANIFEST_NAME not in names and PARTS_FOLDER not in names:
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise ConfigError(
            describe(
                "output folder is not empty and holds no index",
                where=where,
                expected="an empty folder, a new one, or an index to bring up to date",
                got=f"{', '.join(names[:5])}{more}",
                fix="choose another --out",
            )
        )


@contextmanager
def claimed(out: Path) -> Iterator[Path]:
    """Make the folder and hold it against a second builder; gives the folder of the parts.

    A folder that was made here and got no part before something failed is taken away again.

    Raises
    ------
    ConfigError
        The folder cannot be made, or another process builds there.
    """
    parts = out / PARTS_FOLDER
    new = not out.exists()
    try:
        parts.mkdir(parents=True, exist_ok=True)
        lock = (parts / _LOCK_NAME).open("w")
    except OSError as error:
        raise ConfigError(
            describe(
                "output folder cannot be written",
                where=str(out),
                expected="a folder that can be made and written",
                got=error.strerror or str(error),
                fix="choose another --out, or mend its rights",
            )
        ) from error
    with lock:
        _hold(lock, out)
        try:
            yield parts
        except BaseException:
            if new and [p.name for p in parts.iterdir()] == [_LOCK_NAME]:
                shutil.rmtree(out)
            raise


def _hold(lock: TextIO, out: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigError(
            describe(
                "another build works in this folder",
                where=str(out),
                expected="one builder at a time",
                got="a held lock",
                fix="wait for it, or choose another --out",
            )
        ) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        _log.warning("%s: this file system takes no locks; let no second build work in the folder", out)


def clear(out: Path) -> None:
    """Remove what an earlier build left: manifest first, then tables, views and parts."""
    names = [MANIFEST_NAME, VIEWS_NAME, *(f"{name}.parquet" for name in TABLES)]
    for path in [*(out / name for name in names), *(out / PARTS_FOLDER).glob("*.parquet")]:
        path.unlink(missing_ok=True)


def sweep(parts: Path, keep: set[str]) -> None:
    """Remove parts that no table rests on, and unfinished files of builders that were killed."""
    for path in [*parts.glob("*.parquet"), *parts.glob("*.tmp"), *parts.parent.glob("*.tmp")]:
        if path.name not in keep:
            path.unlink(missing_ok=True)
