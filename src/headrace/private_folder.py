"""A folder among the system's temporary ones that goes with its process, and after a kill with the next one's start.

A file inside is locked while the owner lives. The folder gets its name only then, so that whoever finds the lock free
knows that the owner is dead. That holds on one machine: where several share the place, locks may be each one's own, so
the file names the machine, and others leave the folder alone. A folder without a name stays for a moment only, so that
its age tells that nobody goes on with it.
"""

import contextlib
import fcntl
import logging
import os
import platform
import re
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

from headrace.schemas.errors import ConfigError, describe

Kind = Literal["build", "check", "index"]
_NAME: Final = re.compile(r"headrace-(build|check|index)-[0-9a-f]{16}")
_UNNAMED: Final = ".headrace-new-"
_OWNER: Final = ".owner"
_MOMENT_SECONDS: Final = 3600.0
"""Age from which on a folder without a name is left over, whatever clocks of other machines say."""
_log = logging.getLogger(__name__)


class PrivateFolder:
    """A folder of this process, made at once; what dead processes of this user left is removed first.

    Parameters
    ----------
    kind
        Part of its name.

    Raises
    ------
    ConfigError
        No folder can be made there.
    """

    def __init__(self, kind: Kind) -> None:
        place = Path(tempfile.gettempdir())
        _remove_left_over(place)
        try:
            unnamed = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=place))
            self._lock = _locked(unnamed / _OWNER, make=True)
            if self._lock is None:  # no locks here: nobody may take it for left over
                (unnamed / _OWNER).unlink(missing_ok=True)
            else:
                os.write(self._lock, _machine())
            self._kind: Kind = kind
            self.path = unnamed.rename(unnamed.with_name(_new_name(kind)))
        except OSError as error:
            raise ConfigError(
                describe(
                    "no private folder can be made",
                    where=str(place),
                    expected="a folder that can be written, with space",
                    got=error.strerror or str(error),
                    fix="free space, or let the environment variable TMPDIR name another folder",
                )
            ) from error

    def remove(self) -> None:
        """Remove it with all it holds; whoever still writes there finds no folder of that name."""
        with contextlib.suppress(OSError):
            _remove(self.path.rename(self.path.with_name(_new_name(self._kind))))
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Path:
        """Return the path."""
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Remove it."""
        self.remove()


def _locked(path: Path, *, make: bool = False) -> int | None:
    """Open and lock a file; None where another process has it, it is not there, or there are no locks."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _new_name(kind: Kind) -> str:
    return f"headrace-{kind}-{secrets.token_hex(8)}"


def _machine() -> bytes:
    return platform.node().encode()


def _remove(path: Path) -> None:
    """Remove a folder, the owner's file last: what a kill in between leaves is known for what it is."""
    with contextlib.suppress(OSError):
        for entry in path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _OWNER:
                entry.unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


def _remove_left_over(place: Path) -> None:
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            unnamed = entry.name.startswith(_UNNAMED)
            if not (unnamed or _NAME.fullmatch(entry.name)) or not entry.is_dir(follow_symlinks=False):
                continue
            found = entry.stat(follow_symlinks=False)
            if found.st_uid != os.getuid():
                continue
            owner = Path(entry.path, _OWNER)
            handle = _locked(owner)
            lives = handle is None and os.path.lexists(owner)
            known = handle is not None and os.pread(handle, 1024, 0) == _machine()
            if known or (unnamed and not lives and time.time() - found.st_mtime > _MOMENT_SECONDS):
                _log.debug("%s was left by a process that was killed; it is removed", entry.path)
                _remove(Path(entry.path))
            if handle is not None:
                os.close(handle)
