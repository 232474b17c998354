"""Whether a result can be written, said before the work for it."""

import os
from pathlib import Path

from headrace.schemas.errors import ConfigError, describe


def refuse_unwritable(path: Path, flag: str) -> None:
    """Raise unless a file can be written at a path.

    Parameters
    ----------
    path
        The file; replaced where it is there.
    flag
        The option and its value, for the message.

    Raises
    ------
    ConfigError
        It is a folder, or lies in none, or may not be written.
    """
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigError(
            describe(
                "the result cannot be written",
                where=flag,
                expected="a file in a folder that exists and may be written to",
                got="a folder" if path.is_dir() else "no such folder, or no permission",
                fix="make the folder, or name another file",
            )
        )
