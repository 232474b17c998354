"""Collect everything that is wrong, then say it at once.

A check runs inside :meth:`Problems.collecting`; its error is kept and the next check still runs.
"""

from types import TracebackType

from headrace.schemas.errors import ConfigError, HeadraceError, SourceError


class Problems:
    """Errors found so far, and remarks that stop nothing."""

    def __init__(self) -> None:
        self.errors: list[HeadraceError] = []
        self.remarks: list[str] = []

    def collecting(self) -> "_Collecting":
        """Keep a configuration or source error of the block instead of letting it pass."""
        return _Collecting(self.errors)

    def take(self, other: "Problems") -> None:
        """Add what another collection holds."""
        self.errors += other.errors
        self.remarks += other.remarks

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


class _Collecting:
    """Context that keeps errors of two kinds; a class, so that type checkers see that the block may be cut short."""

    def __init__(self, errors: list[HeadraceError]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Keep the error if it is one to collect."""
        if isinstance(error, ConfigError | SourceError):
            self._errors.append(error)
            return True
        return False
