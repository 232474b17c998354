"""Collect everything that is wrong, then say it at once.

A check runs inside :meth:`Problems.collecting`; its error is kept and the next check still runs.
"""

import re
from collections.abc import Sequence
from types import TracebackType

from headrace.schemas.errors import ConfigError, HeadraceError, SourceError, StorageError

_PLACE = re.compile(r"(?<=  where:    )(s3://\S+)")
_TRIES = re.compile(r" \(\d+ tries in \d+ s\)")


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
        errors = _told_once(self.errors)
        if len(errors) == 1:
            raise errors[0]
        kind = ConfigError if any(isinstance(e, ConfigError) for e in errors) else SourceError
        listed = "\n".join(f"{number}. {error}" for number, error in enumerate(errors, start=1))
        raise kind(f"{len(errors)} problems stand in the way of this index\n{listed}")


def _told_once(errors: Sequence[HeadraceError]) -> list[HeadraceError]:
    """Say the same once; what an object store said of several stores becomes one error with all the places."""
    alike: dict[object, list[HeadraceError]] = {}
    for error in errors:
        cause = _PLACE.sub("", _TRIES.sub("", str(error))) if isinstance(error, StorageError) else str(error)
        alike.setdefault(cause, []).append(error)
    return [_with_places(same) for same in alike.values()]


def _with_places(same: Sequence[HeadraceError]) -> HeadraceError:
    first, *others = same
    if not others or not isinstance(first, StorageError):
        return first
    places = dict.fromkeys(found[1] for error in others if (found := _PLACE.search(str(error))))
    return StorageError(_PLACE.sub(lambda found: f"{found[0]}; also {', '.join(places)}", str(first), count=1))


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
