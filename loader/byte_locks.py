"""Locks on single bytes of a file, between processes of a host.

They belong to the open file, not to the thread or process, and vanish with it, however it ends.
"""

import fcntl
import struct

_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, start, length, process."""


def lock_byte(fd: int, position: int, *, shared: bool = False) -> bool:
    """Take a lock without waiting; False when another open file has it in the way."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_RDLCK if shared else fcntl.F_WRLCK, position))
    except (BlockingIOError, PermissionError):
        return False
    return True


def unlock_byte(fd: int, position: int) -> None:
    """Give a lock back."""
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, position))


def _flock(kind: int, position: int) -> bytes:
    return _FLOCK.pack(kind, 0, position, 1, 0)
