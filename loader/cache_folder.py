"""A folder of rows files that the processes of a host share, kept below a number of bytes.

Files are made, opened and deleted by one process at a time. Only rows files are ever deleted, by name and content, and
of these only what nobody has open, least recently used first.
"""

import errno
import fcntl
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from headrace.loader.budget import human_nbytes
from headrace.loader.rows_file import RowsFile, RowsShape, lock_unused, written_by_headrace
from headrace.loader.storage import refuse_folder, refuse_room, warn_of_memory
from headrace.schemas.errors import ConfigError, describe

logger = logging.getLogger(__name__)

_NAME = re.compile(r"headrace-[0-9a-f]{32}\.rows")
_LOCK, _UNFINISHED = "headrace.lock", "headrace-unfinished.rows"


def open_kept_rows(folder: Path, key: str, shape: RowsShape, limit_nbytes: int | None) -> RowsFile:
    """Open the rows file of a key, or make it.

    Parameters
    ----------
    folder
        Made if there is none.
    key
        32 hex digits, of what decides every byte of the rows.
    shape
        Parts of the file.
    limit_nbytes
        What all rows files of the folder may take together; None: whatever the disk has.

    Raises
    ------
    ConfigError
        It does not fit, even with all files deleted that nobody uses; or the folder cannot be used.
    """
    path = folder / f"headrace-{key}.rows"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            found = _open(path, key, shape)
            if found is None:
                _make_room(folder, shape.nbytes, limit_nbytes)
                logger.info("decoded rows take %s in %s, where they are kept", human_nbytes(shape.nbytes), folder)
                warn_of_memory(folder)
                found = RowsFile.create(path, folder / _UNFINISHED, key, shape)
            os.utime(path)
            return found
    except BlockingIOError as error:
        raise ConfigError(
            describe(
                "decoded rows are in use on another host",
                where=str(path),
                expected="a folder of this host's own",
                got="a file that a process on another host has open",
                fix="set loader.cache_dir to a local disk",
            )
        ) from error
    except OSError as error:
        raise refuse_folder(folder, shape.nbytes, error) from error


def _open(path: Path, key: str, shape: RowsShape) -> RowsFile | None:
    with suppress(FileNotFoundError):
        found = RowsFile.open(path, key, shape)
        if found is not None:
            return found
        logger.warning("%s is damaged and made anew", path)
        path.unlink()
    return None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A rows file: what it takes, when it was last used, and a descriptor that keeps others from opening it."""

    path: Path
    fd: int
    nbytes: int
    used_ns: int
    unused: bool


def _make_room(folder: Path, nbytes: int, limit_nbytes: int | None) -> None:
    """Delete unused rows files, oldest first, until ``nbytes`` fit; deletes nothing if they cannot fit."""
    with suppress(FileNotFoundError):  # of a process that was killed while it made one
        (folder / _UNFINISHED).unlink()
    files = sorted(_own_files(folder), key=lambda file: file.used_ns)
    try:
        status = os.statvfs(folder)
        free, taken = status.f_bavail * status.f_frsize, sum(file.nbytes for file in files)
        excess = nbytes - free
        if limit_nbytes is not None:
            excess = max(excess, taken + nbytes - limit_nbytes)
        unused = [file for file in files if file.unused]
        if excess > sum(file.nbytes for file in unused):
            held = taken - sum(file.nbytes for file in unused)
            if limit_nbytes is not None and held + nbytes > limit_nbytes:
                raise refuse_room(folder, nbytes, limit_nbytes, held)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        for file in unused:
            if excess <= 0:
                break
            logger.info("%s is deleted to make room: %s", file.path, human_nbytes(file.nbytes))
            file.path.unlink()
            excess -= file.nbytes
    finally:
        for file in files:
            os.close(file.fd)


def _own_files(folder: Path) -> Iterator[_Held]:
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            try:
                fd = os.open(path, os.O_RDWR)
            except OSError:  # somebody else's, or gone
                continue
            if not written_by_headrace(fd):
                os.close(fd)
                continue
            stat = os.fstat(fd)
            yield _Held(path=path, fd=fd, nbytes=stat.st_size, used_ns=stat.st_mtime_ns, unused=lock_unused(fd))
