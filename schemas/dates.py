"""Times as integers: seconds since 1970-01-01 in a data set's own calendar.

Wall time exists only at the edges: configured dates come in through :func:`parse_date`, stored CF numbers through
:func:`decode_seconds`, ISO text goes out through :func:`iso_text`. Calendars are those of CF, by cftime.
"""

import re

import cftime
import numpy as np
from numpy.typing import NDArray

from headrace.schemas.errors import ConfigError, SourceError, describe

EPOCH = "seconds since 1970-01-01"
_UNIT_SECONDS = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400,
}  # fmt: skip
_UNIT_PER_SECOND = {
    "ms": 10**3, "millisecond": 10**3, "milliseconds": 10**3, "us": 10**6, "microsecond": 10**6,
    "microseconds": 10**6, "ns": 10**9, "nanosecond": 10**9, "nanoseconds": 10**9,
}  # fmt: skip
_DATE = re.compile(r"^\s*([+-]?\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.0*)?)?\s*Z?)?\s*$")


def parse_date(text: str, calendar: str, key: str = "") -> tuple[int, bool]:
    """Read a date or date-time; return its seconds since 1970-01-01 in the calendar and whether it is a bare date.

    Raises
    ------
    ConfigError
        It cannot be read, or the calendar has no such day; names ``key``, the dotted key that holds it.
    """
    where = f"{key} = {text!r}" if key else repr(text)
    match = _DATE.match(text)
    if match is None:
        raise ConfigError(
            describe(
                "date cannot be read",
                where=where,
                expected="YYYY-MM-DD or YYYY-MM-DD HH:MM[:SS], UTC",
                got=text,
                fix="write the date in ISO form",
            )
        )
    year, month, day, hour, minute, second = (int(g) if g is not None else 0 for g in match.groups())
    try:
        moment = cftime.datetime(year, month, day, hour, minute, second, calendar=calendar)
    except ValueError as error:
        raise ConfigError(
            describe(
                "date does not exist",
                where=where,
                expected=f"a date of the calendar {calendar}",
                got=text,
                fix="use a date of that calendar",
            )
        ) from error
    return round(cftime.date2num(moment, EPOCH, calendar=calendar)), match.group(4) is None


def iso_text(seconds: int, calendar: str) -> str:
    """Return seconds since 1970-01-01 in a calendar as ISO text."""
    moment = cftime.num2date(int(seconds), EPOCH, calendar=calendar)
    return str(moment.strftime("%Y-%m-%dT%H:%M:%S"))


def decode_seconds(values: NDArray[np.generic], units: str, calendar: str, where: str) -> NDArray[np.int64]:
    """Turn CF time numbers into whole seconds since 1970-01-01 in their calendar.

    Parameters
    ----------
    values
        Numbers [T], integer or floating, as stored.
    units
        CF text such as ``days since 1980-01-01``.
    calendar
        CF name.
    where
        Store and array, for messages.

    Raises
    ------
    SourceError
        The unit is unknown (months and years have no fixed length), a time is missing, or not whole seconds.
    """
    unit, _, since = units.partition(" since ")
    unit = unit.strip() if unit.strip() in ("ms", "us", "ns") else unit.strip().lower()
    if (unit not in _UNIT_SECONDS and unit not in _UNIT_PER_SECOND) or not since:
        raise SourceError(
            describe(
                "time unit cannot be used",
                where=where,
                expected="seconds, minutes, hours or days since a date (or ms, us, ns)",
                got=units,
                fix="rewrite the time coordinate with a unit of fixed length",
            )
        )
    reference = _reference_seconds(since, calendar, where)
    if values.dtype.kind not in "iuf":
        raise SourceError(
            describe(
                "time coordinate is not numeric",
                where=where,
                expected="integers or floats",
                got=str(values.dtype),
                fix="store CF numbers",
            )
        )
    bad = np.flatnonzero(missing_times(values))
    if bad.size:
        raise SourceError(
            describe(
                "time coordinate has a missing time",
                where=f"{where}, index {bad[0]}",
                expected="a time at every step",
                got="NaN or NaT",
                fix="drop the step from the store, or set fix_time: drop_duplicates, which leaves it out",
            )
        )
    if unit in _UNIT_PER_SECOND:
        per_second = _UNIT_PER_SECOND[unit]
        whole, rest = (
            (np.divmod(values.astype(np.int64), per_second))
            if values.dtype.kind in "iu"
            else np.divmod(np.rint(values), per_second)
        )
    else:
        scaled = (
            values.astype(np.int64) * _UNIT_SECONDS[unit]
            if values.dtype.kind in "iu"
            else values.astype(np.float64) * _UNIT_SECONDS[unit]
        )
        whole = np.rint(scaled)
        # A float axis in days carries each second to about 1e-5 s in this century.
        rest = np.where(np.abs(scaled - whole) > 1e-3, 1, 0)
    off = np.flatnonzero(rest)
    if off.size:
        raise SourceError(
            describe(
                "time is not a whole second",
                where=f"{where}, index {off[0]}",
                expected="whole seconds",
                got=f"{values[off[0]]} {units}",
                fix="round the time coordinate",
            )
        )
    seconds: NDArray[np.int64] = whole.astype(np.int64) + reference
    return seconds


def missing_times(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return where a stored time is NaN, infinite or NaT, bool [T]."""
    if values.dtype.kind == "f":
        return np.asarray(~np.isfinite(values))
    nat = np.iinfo(np.int64).min  # the smallest number of an unsigned type is an ordinary 0
    return np.asarray(values.astype(np.int64) == nat)


def _reference_seconds(since: str, calendar: str, where: str) -> int:
    try:
        reference = cftime.num2date(0, f"seconds since {since.strip()}", calendar=calendar)
        seconds: int = round(cftime.date2num(reference, EPOCH, calendar=calendar))
    except ValueError as error:
        raise SourceError(
            describe(
                "time reference cannot be read",
                where=where,
                expected="'<unit> since <date>' and a CF calendar",
                got=f"since {since}, calendar {calendar}",
                fix="mend the attributes of the time coordinate",
            )
        ) from error
    return seconds
