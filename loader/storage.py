"""Decoded rows of a split: in memory when they stay resident, in a private file when they do not fit.

The file is unlinked as soon as it is open, so nothing is left behind however the process ends, and its space is
reserved before the first row is written, so a full disk is an error and never a crash.
"""

import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headrace.loader.budget import human_nbytes
from headrace.schemas.errors import ConfigError, describe


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


def rows_on_disk(num_rows: int, num_x: int, num_y: int, folder: str | None) -> Rows:
    """Return rows in a private, already unlinked file.

    Parameters
    ----------
    num_rows, num_x, num_y
        Shape.
    folder
        Where the file lies; the system's temporary folder when None.

    Raises
    ------
    ConfigError
        The folder has too little space or does not take files; says needed and available bytes.
    """
    place = Path(folder or tempfile.gettempdir())
    nbytes = max(num_rows * (num_x + num_y) * 4, 4)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place, prefix="headrace-spill-") as file:
            os.posix_fallocate(file.fileno(), 0, nbytes)
            flat = np.memmap(file, dtype=np.float32, mode="r+", shape=(nbytes // 4,))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        free = f"{human_nbytes(_free(place))} free" if full else error.strerror or str(error)
        raise ConfigError(
            describe(
                "decoded tiles cannot be spilled to disk",
                where=str(place),
                expected=f"{human_nbytes(nbytes)} of space",
                got=free,
                fix="set loader.cache_dir to a larger disk, or raise loader.memory_budget",
            )
        ) from error
    cut = num_rows * num_x
    return Rows(
        x=flat[:cut].reshape(num_rows, num_x),
        y=flat[cut : cut + num_rows * num_y].reshape(num_rows, num_y),
        spill_nbytes=nbytes,
    )


def _free(place: Path) -> int:
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize
