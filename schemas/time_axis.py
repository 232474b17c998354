"""The time axis of a data set, cut into regular segments; see :mod:`headrace.schemas.dates` for the integers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headrace.schemas.dates import iso_text, parse_date
from headrace.schemas.errors import ConfigError, SourceError, describe
from headrace.schemas.windows import TimeRange


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

    def range_of(self, first: str, last: str, key: str = "") -> tuple[TimeRange, bool]:
        """Return the steps from ``first`` to ``last``, both inclusive, and whether the record cut them.

        A bare last date means its whole day; a date-time is inclusive as written. Errors name ``key``, the dotted key
        that holds the dates.
        """
        begin = parse_date(first, self.calendar, key)[0]
        end, whole_day = parse_date(last, self.calendar, key)
        end += 86400 if whole_day else 1
        if begin >= end:
            raise ConfigError(
                describe(
                    "period ends before it starts",
                    where=f"{key} = [{first}, {last}]" if key else f"[{first}, {last}]",
                    expected="first date <= last date",
                    got=f"{first} after {last}",
                    fix="swap the dates",
                )
            )
        final = self.segments[-1]
        record_end = final.seconds + self.step_seconds * (final.stop - final.start)
        # Only a whole step outside the record counts: daily values may be stamped at noon.
        clipped = begin <= self.segments[0].seconds - self.step_seconds or end > record_end
        return TimeRange(start=self.step_at_or_after(begin), stop=self.step_at_or_after(end)), clipped


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
        raise SourceError(
            describe(
                "time axis is empty", where=where, expected="at least one step", got="0 steps", fix="check the store"
            )
        )
    if seconds.size == 1:
        return TimeAxis(
            segments=(Segment(start=0, stop=1, seconds=int(seconds[0])),), step_seconds=86400, calendar=calendar
        )
    steps = np.diff(seconds)
    bad = np.flatnonzero(steps <= 0)
    if bad.size:
        kind = "repeats a time" if steps[bad[0]] == 0 else "is not sorted"
        cure = "drop_duplicates" if (np.diff(np.sort(seconds)) == 0).any() else "sort"
        i = int(bad[0]) + 1
        raise SourceError(
            describe(
                f"time coordinate {kind}",
                where=f"{where}, index {i}",
                expected=f"a time after {iso_text(int(seconds[i - 1]), calendar)}",
                got=iso_text(int(seconds[i]), calendar),
                fix=f"sort the store by time and keep one step per time, or set fix_time: {cure}",
            )
        )
    step = int(steps.min())
    odd = np.flatnonzero(steps % step)
    if odd.size:
        i = int(odd[0]) + 1
        raise SourceError(
            describe(
                "time step is not regular",
                where=f"{where}, index {i}",
                expected=f"multiples of the smallest step, {step} s",
                got=f"{int(steps[i - 1])} s (monthly and other calendar-length steps cannot be windowed by step count)",
                fix="resample to a fixed step",
            )
        )
    cuts = np.flatnonzero(steps != step) + 1
    edges = [0, *cuts.tolist(), int(seconds.size)]
    segments = tuple(Segment(start=a, stop=b, seconds=int(seconds[a])) for a, b in pairwise(edges))
    return TimeAxis(segments=segments, step_seconds=step, calendar=calendar)


def axis_from_rows(rows: Sequence[tuple[int, int, int]], step_seconds: int, calendar: str) -> TimeAxis:
    """Rebuild an axis from (start, stop, seconds) triples, as kept in the table ``segments``."""
    return TimeAxis(
        segments=tuple(Segment(start=a, stop=b, seconds=c) for a, b, c in rows),
        step_seconds=step_seconds,
        calendar=calendar,
    )
