"""Decoded rows of a split: in memory when they stay resident, in a file when they do not fit or are to be kept.

A private file is unlinked as soon as it is open, so nothing is left behind however the process ends. The space of a
file is reserved before the first row is written, so a full disk is an error and never a crash.
"""

import errno
import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray

from headrace.loader.budget import human_nbytes
from headrace.schemas.errors import ConfigError, describe

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Decoded rows.

    Parameters
    ----------
    x
        float32 [rows, Vx], normalised inputs without NaN.
    y
        float32 [rows, Vy], normalised targets; NaN is missing.
    spill_nbytes
        Bytes of disk behind them; 0 in memory.
    """

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    spill_nbytes: int = 0


def rows_in_memory(num_rows: int, num_x: int, num_y: int) -> Rows:
    """Return rows in memory; pages are taken as they are written."""
    return Rows(x=np.empty((num_rows, num_x), np.float32), y=np.empty((num_rows, num_y), np.float32))


def rows_on_disk(num_rows: int, num_x: int, num_y: int, limit_nbytes: int | None = None) -> Rows:
    """Return rows in a private, already unlinked file in the system's temporary folder.

    Parameters
    ----------
    num_rows, num_x, num_y
        Shape.
    limit_nbytes
        What the file may take; None: whatever the disk has.

    Raises
    ------
    ConfigError
        The folder has too little space or does not take files; says needed and available bytes.
    """
    place = Path(tempfile.gettempdir())
    nbytes = max(num_rows * (num_x + num_y) * 4, 4)
    if limit_nbytes is not None and nbytes > limit_nbytes:
        raise refuse_room(place, nbytes, limit_nbytes, 0)
    logger.info("decoded rows take %s in %s until the loader is closed", human_nbytes(nbytes), place)
    try:
        with tempfile.TemporaryFile(dir=place, prefix="headrace-spill-") as file:
            os.posix_fallocate(file.fileno(), 0, nbytes)
            flat = np.memmap(file, dtype=np.float32, mode="r+", shape=(nbytes // 4,))
    except OSError as error:
        raise refuse_folder(place, nbytes, error) from error
    warn_of_memory(place)
    cut = num_rows * num_x
    return Rows(
        x=flat[:cut].reshape(num_rows, num_x),
        y=flat[cut : cut + num_rows * num_y].reshape(num_rows, num_y),
        spill_nbytes=nbytes,
    )


def warn_of_memory(place: Path) -> None:
    """Say that a folder lies in memory, where spilling saves none."""
    where = place.resolve()
    mounts = {Path(p.mountpoint): p.fstype for p in psutil.disk_partitions(all=True)}
    kind = next((mounts[parent] for parent in (where, *where.parents) if parent in mounts), "")
    if kind in ("tmpfs", "ramfs"):
        logger.warning("%s lies in memory (%s): decoded rows there count beside memory_budget", place, kind)


def refuse_room(place: Path, nbytes: int, limit_nbytes: int, held_nbytes: int) -> ConfigError:
    """Return the error for rows that ``loader.cache_limit`` has no room for."""
    held = f", of which {human_nbytes(held_nbytes)} are in use by other loaders" if held_nbytes else ""
    return ConfigError(
        describe(
            "decoded rows do not fit loader.cache_limit",
            where=str(place),
            expected=f"at least {_exact(held_nbytes + nbytes)}{held}",
            got=_exact(limit_nbytes),
            fix="raise loader.cache_limit or loader.memory_budget, or set loader.cache_dir: off to read chunks again",
        )
    )


def refuse_folder(place: Path, nbytes: int, error: OSError) -> ConfigError:
    """Return the error for a folder that does not take a file of some bytes."""
    full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    return ConfigError(
        describe(
            "decoded rows cannot be spilled to disk",
            where=str(place),
            expected=f"{_exact(nbytes)} of space",
            got=f"{human_nbytes(_free(place))} free" if full else error.strerror or str(error),
            fix="set loader.cache_dir to a larger disk, raise loader.memory_budget, or set loader.cache_dir: off",
        )
    )


def _exact(nbytes: int) -> str:
    return human_nbytes(nbytes) if nbytes < 1024 else f"{human_nbytes(nbytes)} ({nbytes} bytes)"


def _free(place: Path) -> int:
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize
