"""Files of an index are written under another name, synced and renamed: whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from headrace.schemas.errors import ConfigError, describe


@contextmanager
def written(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Give a file to write; it becomes ``path`` once the block ends well.

    Parameters
    ----------
    path
        The file.
    sync
        Whether to wait until it outlives the machine; a copy of what lies elsewhere need not.

    Raises
    ------
    ConfigError
        The disk is full or may not be written.
    """
    # Processes of several machines may write the same part, and two machines may have the same process number.
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with _told(path), unfinished.open("wb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        with _told(path):
            unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Wait until a file outlives the machine; ConfigError where the disk has no space for it after all."""
    with _told(path):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(
            describe(
                "index cannot be written",
                where=str(path),
                expected="space for the file and the right to write it",
                got=error.strerror or str(error),
                fix="free space or mend the rights, then run the same command again: what is scanned so far is kept",
            )
        ) from error
