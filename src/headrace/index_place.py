"""Where an index lies: a folder of this machine, or an ``s3://`` URL."""

from pathlib import Path

from headrace.objects import is_remote, parse_location
from headrace.schemas.errors import ConfigError, describe

IndexPath = Path | str
"""A folder as Path, or an ``s3://`` URL as text: a Path would swallow one of its slashes."""


def index_path(given: str | Path, *, where: str = "") -> IndexPath:
    """Return a folder as Path, and a URL as text without a slash at its end.

    Parameters
    ----------
    given
        A path or URL.
    where
        What to call it in a message, an option say.

    Raises
    ------
    ConfigError
        The URL is of something else than an S3 bucket, or was made a Path.
    """
    if isinstance(given, Path) and given.parts[:1] == ("s3:",):
        raise ConfigError(
            describe(
                "URL was made a Path, which joins its slashes",
                where=str(given),
                expected="the URL as text",
                got=repr(given),
                fix="leave out Path(…)",
            )
        )
    if isinstance(given, str) and given.startswith("s3:/") and not is_remote(given):
        raise ConfigError(
            describe(
                "URL lacks a slash",
                where=f"{where}: {given}" if where else given,
                expected="s3://bucket/folder",
                got="one slash, which makes it a path",
                fix=f"write s3://{given.removeprefix('s3:/')}",
            )
        )
    if isinstance(given, Path) or not is_remote(given):
        return Path(given)
    return parse_location(given, where=where).url
