"""A file of decoded rows that outlives the loader: header, one mark per read group, x, y.

A mark is set once all rows of its group are written, so a process that is killed leaves groups unmarked, never wrong.
The kernel keeps what was written when a process dies; it may lose it with the power. So marks count as long as the
host has not been started again since, and afterwards only if all rows had been written through to the disk.
"""

import json
import os
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from headrace.loader.byte_locks import lock_byte, unlock_byte
from headrace.loader.storage import Rows

FORMAT = 1
_MAGIC = "headrace decoded rows"
_PAGE = 4096
_IN_USE = 0
"""Byte that everyone who has the file open locks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsShape:
    """Size of the parts of a file.

    Parameters
    ----------
    num_rows, num_x, num_y
        Shape of the rows.
    num_groups
        Marks.
    """

    num_rows: int
    num_x: int
    num_y: int
    num_groups: int

    @property
    def x_start(self) -> int:
        """First byte of x."""
        return _PAGE + _paged(self.num_groups)

    @property
    def y_start(self) -> int:
        """First byte of y."""
        return self.x_start + _paged(4 * self.num_rows * self.num_x)

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self.y_start + _paged(4 * self.num_rows * self.num_y)


class RowsFile:
    """An open rows file; get one from :meth:`open` or :meth:`create`, with the folder locked. Is a ``Ledger``.

    Parameters
    ----------
    fd
        Open for reading and writing.
    shape
        Its parts.
    header
        What the first page says.
    """

    def __init__(self, fd: int, shape: RowsShape, header: Mapping[str, object]) -> None:
        self._fd, self._shape, self._header = fd, shape, dict(header)
        weakref.finalize(self, os.close, fd).atexit = False

    @classmethod
    def create(cls, path: Path, unfinished: Path, key: str, shape: RowsShape) -> Self:
        """Make a file, under another name until its space is reserved and its header written; raises OSError."""
        fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            os.posix_fallocate(fd, 0, shape.nbytes)
            made = cls(fd, shape, {"magic": _MAGIC, "format": FORMAT, "key": key, "nbytes": shape.nbytes})
        except OSError:
            os.close(fd)
            unfinished.unlink()
            raise
        made._write_header(boot=_boot(), sealed=False)
        lock_byte(fd, _IN_USE, shared=True)
        unfinished.replace(path)
        return made

    @classmethod
    def open(cls, path: Path, key: str, shape: RowsShape) -> Self | None:
        """Open a file of a key; None when it is not what it should be.

        Raises
        ------
        BlockingIOError
            A process on another host has it open: hosts do not see each other's memory.
        OSError
            There is none, or no right to it.
        """
        fd = os.open(path, os.O_RDWR)
        header = read_header(fd)
        if header is None or header["key"] != key or header["nbytes"] != shape.nbytes:
            os.close(fd)
            return None
        found = cls(fd, shape, header)
        if header["boot"] != _boot():
            if not lock_byte(fd, _IN_USE):
                raise BlockingIOError(path)
            if not header["sealed"]:
                os.pwrite(fd, bytes(shape.num_groups), _PAGE)
            found._write_header(boot=_boot(), sealed=header["sealed"])
        lock_byte(fd, _IN_USE, shared=True)
        return found

    @property
    def to_be_sealed(self) -> bool:
        """Whether all groups are marked and not yet known to be on the disk."""
        return not self._header["sealed"] and self._complete()

    def rows(self) -> Rows:
        """Return the rows, mapped: every process that has the file open sees the same memory."""
        shape = self._shape
        with os.fdopen(os.dup(self._fd), "r+b") as file:
            flat = np.memmap(file, dtype=np.float32, mode="r+", shape=(shape.nbytes // 4,))
        x, y = flat[shape.x_start // 4 :], flat[shape.y_start // 4 :]
        return Rows(
            x=x[: shape.num_rows * shape.num_x].reshape(shape.num_rows, shape.num_x),
            y=y[: shape.num_rows * shape.num_y].reshape(shape.num_rows, shape.num_y),
            spill_nbytes=shape.nbytes,
        )

    def finished(self, number: int) -> bool:
        """Return whether the rows of a group are there."""
        return os.pread(self._fd, 1, _PAGE + number) == b"\1"

    def claim(self, number: int) -> bool:
        """Take a group; False while another process has it."""
        return lock_byte(self._fd, _PAGE + number)

    def release(self, number: int) -> None:
        """Give a group back, finished or not."""
        unlock_byte(self._fd, _PAGE + number)

    def finish(self, number: int) -> bool:
        """Mark a group; True when all are marked now."""
        os.pwrite(self._fd, b"\1", _PAGE + number)
        return self._complete()

    def _complete(self) -> bool:
        return os.pread(self._fd, self._shape.num_groups, _PAGE) == b"\1" * self._shape.num_groups

    def seal(self) -> None:
        """Write all rows through to the disk and say so."""
        os.fdatasync(self._fd)
        self._write_header(boot=self._header["boot"], sealed=True)

    def _write_header(self, **changes: object) -> None:
        self._header |= changes
        os.pwrite(self._fd, json.dumps(self._header).encode().ljust(_PAGE), 0)


def read_header(fd: int) -> dict[str, object] | None:
    """Return the header of a rows file of this format and of its full size, else None."""
    try:
        header = json.loads(os.pread(fd, _PAGE, 0))
    except ValueError:
        return None
    known = isinstance(header, dict) and header.get("magic") == _MAGIC and header.get("format") == FORMAT
    whole = known and {"key", "nbytes", "boot", "sealed"} <= header.keys()
    return header if whole and header["nbytes"] == os.fstat(fd).st_size else None


def written_by_headrace(fd: int) -> bool:
    """Return whether a file begins as rows files of any format do, whole or not."""
    return os.pread(fd, _PAGE, 0).startswith(json.dumps({"magic": _MAGIC}).encode()[:-1])


def lock_unused(fd: int) -> bool:
    """Take a file that nobody has open; it is let go when ``fd`` is closed."""
    return lock_byte(fd, _IN_USE)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _paged(nbytes: int) -> int:
    return -(-nbytes // _PAGE) * _PAGE
