"""The time axis as integers: seconds since 1970-01-01 in the data set's own calendar, cut into regular segments.

Wall time exists only at the edges: configured dates come in through :meth:`TimeAxis.range_of`, ISO text goes out
through :func:`iso_text`. Calendars are those of CF (noleap and 360_day included) and come from cftime.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import cftime
import numpy as np
from numpy.typing import NDArray

from headrace.schemas.errors import ConfigError, SourceError, describe
from headrace.schemas.windows import TimeRange

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of steps with a regular time step.

    Parameters
    ----------
    start, stop
        Steps, half-open.
    seconds
        Time of ``start``, seconds since 1970-01-01 in the axis's calendar.
    """

    start: int
    stop: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """Regular segments of one data set's time axis.

    Parameters
    ----------
    segments
        In order of time, together covering [0, num_steps).
    step_seconds
        Length of a step.
    calendar
        CF name.
    """

    segments: tuple[Segment, ...]
    step_seconds: int
    calendar: str

    @property
    def num_steps(self) -> int:
        """Steps on the axis."""
        return self.segments[-1].stop

    def ranges(self) -> list[TimeRange]:
        """Return the segments as step ranges."""
        return [TimeRange(start=s.start, stop=s.stop) for s in self.segments]

    def seconds(self) -> NDArray[np.int64]:
        """Return the time of every step, int64 [T], seconds since 1970-01-01 in the calendar."""
        return np.concatenate([s.seconds + self.step_seconds * np.arange(s.stop - s.start) for s in self.segments])

    def step_at_or_after(self, seconds: int) -> int:
        """Return the first step whose time is not before ``seconds``; ``num_steps`` when all are."""
        for segment in self.segments:
            ahead = -(-(seconds - segment.seconds) // self.step_seconds)
            if ahead < segment.stop - segment.start:
                return segment.start + max(ahead, 0)
        return self.num_steps

    def range_of(self, first: str, last: str) -> tuple[TimeRange, bool]:
        """Return the steps from ``first`` to ``last``, both inclusive, and whether the record cut them.

        A bare last date means its whole day; a date-time is inclusive as written.
        """
        begin = parse_date(first, self.calendar)[0]
        end, whole_day = parse_date(last, self.calendar)
        end += 86400 if whole_day else 1
        if begin >= end:
            raise ConfigError(
                describe("period ends before it starts", where=f"[{first}, {last}]", expected="first date <= last date", got=f"{first} after {last}", fix="swap the dates")
            )
        final = self.segments[-1]
        record_end = final.seconds + self.step_seconds * (final.stop - final.start)
        # Only a whole step outside the record counts: daily values may be stamped at noon.
        clipped = begin <= self.segments[0].seconds - self.step_seconds or end > record_end
        return TimeRange(start=self.step_at_or_after(begin), stop=self.step_at_or_after(end)), clipped


def parse_date(text: str, calendar: str) -> tuple[int, bool]:
    """Read a date or date-time; return its seconds since 1970-01-01 in the calendar and whether it is a bare date."""
    match = _DATE.match(text)
    if match is None:
        raise ConfigError(
            describe("date cannot be read", where=repr(text), expected="YYYY-MM-DD or YYYY-MM-DD HH:MM[:SS], UTC", got=text, fix="write the date in ISO form")
        )
    year, month, day, hour, minute, second = (int(g) if g is not None else 0 for g in match.groups())
    try:
        moment = cftime.datetime(year, month, day, hour, minute, second, calendar=calendar)
    except ValueError as error:
        raise ConfigError(
            describe("date does not exist", where=repr(text), expected=f"a date of the calendar {calendar}", got=text, fix="use a date of that calendar")
        ) from error
    return int(round(cftime.date2num(moment, EPOCH, calendar=calendar))), match.group(4) is None


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
    if unit not in _UNIT_SECONDS and unit not in _UNIT_PER_SECOND or not since:
        raise SourceError(
            describe(
                "time unit cannot be used", where=where, expected="seconds, minutes, hours or days since a date (or ms, us, ns)", got=units,
                fix="rewrite the time coordinate with a unit of fixed length",
            )
        )  # fmt: skip
    reference = _reference_seconds(since, calendar, where)
    if values.dtype.kind not in "iuf":
        raise SourceError(describe("time coordinate is not numeric", where=where, expected="integers or floats", got=str(values.dtype), fix="store CF numbers"))
    nat = np.iinfo(np.int64).min  # the smallest number of an unsigned type is an ordinary 0
    bad = np.flatnonzero(~np.isfinite(values) if values.dtype.kind == "f" else values.astype(np.int64) == nat)
    if bad.size:
        raise SourceError(
            describe("time coordinate has a missing time", where=f"{where}, index {bad[0]}", expected="a time at every step", got="NaN or NaT", fix="drop the step from the store")
        )
    if unit in _UNIT_PER_SECOND:
        per_second = _UNIT_PER_SECOND[unit]
        whole, rest = (np.divmod(values.astype(np.int64), per_second)) if values.dtype.kind in "iu" else np.divmod(np.rint(values), per_second)
    else:
        scaled = values.astype(np.int64) * _UNIT_SECONDS[unit] if values.dtype.kind in "iu" else values.astype(np.float64) * _UNIT_SECONDS[unit]
        whole = np.rint(scaled)
        # A float axis in days carries each second to about 1e-5 s in this century.
        rest = np.where(np.abs(scaled - whole) > 1e-3, 1, 0)
    off = np.flatnonzero(rest)
    if off.size:
        raise SourceError(
            describe("time is not a whole second", where=f"{where}, index {off[0]}", expected="whole seconds", got=f"{values[off[0]]} {units}", fix="round the time coordinate")
        )
    seconds: NDArray[np.int64] = whole.astype(np.int64) + reference
    return seconds


def _reference_seconds(since: str, calendar: str, where: str) -> int:
    try:
        reference = cftime.num2date(0, f"seconds since {since.strip()}", calendar=calendar)
        return int(round(cftime.date2num(reference, EPOCH, calendar=calendar)))
    except ValueError as error:
        raise SourceError(
            describe("time reference cannot be read", where=where, expected="'<unit> since <date>' and a CF calendar", got=f"since {since}, calendar {calendar}", fix="mend the attributes of the time coordinate")
        ) from error


def find_segments(seconds: NDArray[np.int64], calendar: str, where: str) -> TimeAxis:
    """Cut times into regular segments.

    The step is the smallest difference; wherever a larger one occurs a segment ends. All differences must be
    multiples of the step.

    Raises
    ------
    SourceError
        No step at all, times not strictly increasing, or differences that are no multiple of the step (monthly data).
    """
    if seconds.size == 0:
        raise SourceError(describe("time axis is empty", where=where, expected="at least one step", got="0 steps", fix="check the store"))
    if seconds.size == 1:
        return TimeAxis(segments=(Segment(start=0, stop=1, seconds=int(seconds[0])),), step_seconds=86400, calendar=calendar)
    steps = np.diff(seconds)
    bad = np.flatnonzero(steps <= 0)
    if bad.size:
        kind = "repeats a time" if steps[bad[0]] == 0 else "is not sorted"
        i = int(bad[0]) + 1
        raise SourceError(
            describe(
                f"time coordinate {kind}", where=f"{where}, index {i}", expected=f"a time after {iso_text(int(seconds[i - 1]), calendar)}",
                got=iso_text(int(seconds[i]), calendar), fix="sort the store by time and keep one row per time",
            )
        )  # fmt: skip
    step = int(steps.min())
    odd = np.flatnonzero(steps % step)
    if odd.size:
        i = int(odd[0]) + 1
        raise SourceError(
            describe(
                "time step is not regular", where=f"{where}, index {i}", expected=f"multiples of the smallest step, {step} s",
                got=f"{int(steps[i - 1])} s (monthly and other calendar-length steps cannot be windowed by step count)", fix="resample to a fixed step",
            )
        )  # fmt: skip
    cuts = np.flatnonzero(steps != step) + 1
    edges = [0, *cuts.tolist(), int(seconds.size)]
    segments = tuple(Segment(start=a, stop=b, seconds=int(seconds[a])) for a, b in zip(edges[:-1], edges[1:], strict=True))
    return TimeAxis(segments=segments, step_seconds=step, calendar=calendar)


def axis_from_rows(rows: Sequence[tuple[int, int, int]], step_seconds: int, calendar: str) -> TimeAxis:
    """Rebuild an axis from (start, stop, seconds) triples, as kept in the table ``segments``."""
    return TimeAxis(segments=tuple(Segment(start=a, stop=b, seconds=c) for a, b, c in rows), step_seconds=step_seconds, calendar=calendar)
