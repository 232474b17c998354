"""A folder of objects on a disk."""

import os
from pathlib import Path

from headrace.objects.stat import ObjectStat
from headrace.schemas.errors import ReadError, describe


def stat_file(path: str | Path) -> ObjectStat | None:
    """Return size and fingerprint of a file, or None when it is proven absent.

    Raises
    ------
    ReadError
        The file system does not say.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReadError(
            describe(
                "stored chunk cannot be looked at", where=str(path), expected="a readable file",
                got=error.strerror or str(error), fix="check the rights on the store",
            )
        ) from error  # fmt: skip
    return ObjectStat(nbytes=found.st_size, fingerprint=f"{found.st_size}:{found.st_mtime_ns}")


class LocalFolder:
    """Files below one folder; see :class:`headrace.objects.folder.ObjectFolder`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def url(self) -> str:
        """The path."""
        return str(self.path)

    def read(self, name: str) -> bytes:
        """Return a file's content."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ReadError(_refused(self.path / name, "read", error)) from error

    def write(self, name: str, data: bytes) -> None:
        """Write beside the file and rename, so that no reader ever sees half of it."""
        path = self.path / name
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise ReadError(_refused(path, "written", error)) from error

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of files, sorted."""
        return list(self.stats(prefix))

    def stats(self, prefix: str = "") -> dict[str, ObjectStat]:
        """Return size and fingerprint of files, in order of their names."""
        below = self.path / prefix.rpartition("/")[0]
        found = (p for p in below.rglob("*") if p.is_file() and not p.name.endswith(".partial"))
        names = sorted(name for p in found if (name := p.relative_to(self.path).as_posix()).startswith(prefix))
        stats = ((name, stat_file(self.path / name)) for name in names)
        return {name: stat for name, stat in stats if stat is not None}

    def stat(self, name: str) -> ObjectStat | None:
        """Return size and fingerprint of a file, or None where there is none."""
        return stat_file(self.path / name)

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise ReadError(_refused(self.path / name, "removed", error)) from error


def _refused(path: Path, done: str, error: OSError) -> str:
    return describe(
        f"file cannot be {done}",
        where=str(path),
        expected="a disk that lets it",
        got=error.strerror or str(error),
        fix="check rights and free space",
    )
