"""The exception tree, grouped by what a caller would do about it.

Every message says what is wrong, where, what was expected, what was found and what to do.
The command line turns ``exit_code`` into the process status.
"""

from typing import ClassVar


class HeadraceError(Exception):
    """Root of every error Headrace raises on purpose."""

    exit_code: ClassVar[int] = 1


class ConfigError(HeadraceError, ValueError):
    """The configuration, a flag or an argument is wrong: change it and run again."""

    exit_code: ClassVar[int] = 2


class SourceError(HeadraceError):
    """A store cannot be used as it is: missing, unreadable, or laid out in a way the indexer cannot take."""

    exit_code: ClassVar[int] = 3


class StoreNotFoundError(SourceError):
    """There is no store where one should be."""


class ReadError(SourceError):
    """One chunk could not be read or decoded; the message names array, chunk key and byte length."""


class DamagedChunkError(ReadError):
    """The stored bytes of a chunk are no chunk; reading them again would not help, unlike after a fault on the way."""


class StorageError(ReadError):
    """An object store cannot be reached, refuses, or keeps failing; the message names the URL and what to do."""


class StaleIndexError(HeadraceError):
    """The index is of other stores or settings, or they changed after it was built: run ``build-index`` again."""

    exit_code: ClassVar[int] = 4


class IndexFormatError(HeadraceError):
    """The folder is no index, an unfinished one, or one of a version this Headrace does not know."""

    exit_code: ClassVar[int] = 4


def describe(what: str, *, where: str, expected: str, got: str, fix: str) -> str:
    """Lay out one error message in the five parts every message has.

    Parameters
    ----------
    what
        One clause, no final stop.
    where
        Data set, variable, basin, URI or chunk key.
    expected, got
        The rule and the offending value.
    fix
        What the reader should do next, as an imperative sentence.
    """
    return f"{what}\n  where:    {where}\n  expected: {expected}\n  got:      {got}\n  to fix:   {fix}"
