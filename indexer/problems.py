"""Collect everything that is wrong, then say it at once.

A check runs inside :meth:`Problems.collecting`; its error is kept and the next check still runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.schemas.errors import ConfigError, HeadraceError, SourceError


class Problems:
    """Errors found so far, and remarks that stop nothing."""

    def __init__(self) -> None:
        self.errors: list[HeadraceError] = []
        self.remarks: list[str] = []

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep a configuration or source error of the block instead of letting it pass."""
        try:
            yield
        except (ConfigError, SourceError) as error:
            self.errors.append(error)

    def raise_if_any(self) -> None:
        """Raise one error that lists all; a configuration error if any of them is one.

        Raises
        ------
        ConfigError, SourceError
            At least one error was kept.
        """
        if not self.errors:
            return
        if len(self.errors) == 1:
            raise self.errors[0]
        kind = ConfigError if any(isinstance(e, ConfigError) for e in self.errors) else SourceError
        listed = "\n".join(f"{number}. {error}" for number, error in enumerate(self.errors, start=1))
        raise kind(f"{len(self.errors)} problems stand in the way of this index\n{listed}")
