"""``--from`` and ``--to`` of ``inspect`` → steps of each data set, in its own calendar."""

import re
from collections.abc import Mapping

from headrace.schemas.dates import iso_text, parse_date
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.time_axis import TimeAxis

_MONTH = re.compile(r"^\s*(\d{4})(?:-(\d{1,2}))?\s*$")
_DAY_SECONDS = 86_400


def period_steps(
    axes: Mapping[str, TimeAxis], first: str | None, last: str | None, where: str
) -> list[tuple[int, int]]:
    """Return the steps of a period, [start, stop) for each data set; start ≥ stop where it has none.

    Parameters
    ----------
    axes
        Data set → its time axis.
    first, last
        A year, a month, a date or a date-time, UTC, both inclusive; None for the end of the record.
    where
        The index, for messages.

    Raises
    ------
    ConfigError
        A date cannot be read, the period ends before it starts, or no data set has a step in it.
    """
    spans = []
    for axis in axes.values():
        begin = None if first is None else _bounds(first, axis.calendar, "--from")[0]
        end = None if last is None else _bounds(last, axis.calendar, "--to")[1]
        if begin is not None and end is not None and begin >= end:
            raise ConfigError(
                describe(
                    "period ends before it starts",
                    where=f"{where} --from {first} --to {last}",
                    expected="--from before --to",
                    got=f"{first} after {last}",
                    fix="swap the dates",
                )
            )
        start = 0 if begin is None else axis.step_at_or_after(begin)
        spans.append((start, axis.num_steps if end is None else axis.step_at_or_after(end)))
    if all(start >= stop for start, stop in spans):
        raise ConfigError(
            describe(
                "no data set has a step in the period",
                where=f"{where} --from {first or '…'} --to {last or '…'}",
                expected="; ".join(f"{name}: {_record(axis)}" for name, axis in axes.items()),
                got="a period outside these records, or in a gap of their time axes",
                fix="choose dates inside a record",
            )
        )
    return spans


def _bounds(text: str, calendar: str, key: str) -> tuple[int, int]:
    """Return the first second of what a text names, and the first one after it."""
    match = _MONTH.match(text)
    if match is None:
        seconds, whole_day = parse_date(text, calendar, key)
        return seconds, seconds + (_DAY_SECONDS if whole_day else 1)
    year, month = int(match.group(1)), int(match.group(2) or 1)
    begin = parse_date(f"{year:04d}-{month:02d}-01", calendar, key)[0]
    months = 1 if match.group(2) else 12
    after = 12 * year + month - 1 + months
    return begin, parse_date(f"{after // 12:04d}-{after % 12 + 1:02d}-01", calendar, key)[0]


def _record(axis: TimeAxis) -> str:
    last = axis.segments[-1]
    seconds = (axis.segments[0].seconds, last.seconds + (last.stop - last.start - 1) * axis.step_seconds)
    return " to ".join(iso_text(s, axis.calendar) for s in seconds)
