"""Wall time to steps and back, in every calendar; cftime is the oracle."""

import cftime
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.dates import decode_seconds, iso_text, parse_date
from headrace.schemas.errors import ConfigError, SourceError
from headrace.schemas.time_axis import TimeAxis, axis_from_rows, find_segments

DAY, HOUR = 86_400, 3_600
CALENDARS = ("standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "all_leap", "360_day", "julian")
UNITS = {"seconds": 1, "s": 1, "minutes": 60, "min": 60, "hours": HOUR, "h": HOUR, "days": DAY, "Days": DAY}
PARTS = {"ns": 10**9, "nanoseconds": 10**9, "us": 10**6, "microseconds": 10**6, "ms": 10**3, "milliseconds": 10**3}


def decode(values: object, units: str, calendar: str = "standard") -> list[int]:
    return decode_seconds(np.asarray(values), units, calendar, "s.zarr, array time").tolist()


def axis(start: str, steps: int, step: int, calendar: str = "standard") -> TimeAxis:
    first = parse_date(start, calendar)[0]
    return find_segments(first + step * np.arange(steps), calendar, "s.zarr")


@given(st.sampled_from(CALENDARS), st.sampled_from(sorted(UNITS)), st.lists(st.integers(-30_000, 30_000), min_size=1))
def test_whole_units_decode_as_cftime_does(calendar: str, unit: str, numbers: list[int]) -> None:
    units = f"{unit} since 1980-02-28 06:00"
    moments = cftime.num2date(numbers, units.lower(), calendar=calendar)
    expected = [round(s) for s in cftime.date2num(moments, "seconds since 1970-01-01", calendar=calendar).tolist()]
    for dtype in (np.int64, np.int32, ">i4", np.float64, np.float32):
        stored = np.array(numbers, dtype=dtype)
        assert decode(stored, units, calendar) == expected


@pytest.mark.parametrize("unit", sorted(PARTS))
def test_parts_of_a_second_decode_exactly_even_far_from_the_reference(unit: str) -> None:
    seconds = [-3 * 10**9, 0, 1, 4_000_000_000]
    assert decode([s * PARTS[unit] for s in seconds], f"{unit} since 1970-01-01") == seconds
    assert decode([0.0, 3600.0 * PARTS[unit]], f"{unit} since 1970-01-01") == [0, 3600]


@given(st.sampled_from(CALENDARS), st.integers(-60 * 365 * DAY, 200 * 365 * DAY))
def test_iso_text_and_parse_date_invert_each_other(calendar: str, seconds: int) -> None:
    assert parse_date(iso_text(seconds, calendar), calendar) == (seconds, False)


@given(st.integers(0, 40_000 * 24))
def test_hours_stored_as_fractions_of_days_come_back_to_the_second(hours: int) -> None:
    assert decode([hours / 24], "days since 1900-01-01") == [hours * HOUR - 25_567 * DAY]


def test_unsigned_times_may_start_at_zero() -> None:
    assert decode(np.array([0, 1], dtype=np.uint16), "days since 1970-01-01") == [0, DAY]


def test_360_day_calendar_has_a_30_february() -> None:
    days = parse_date("2000-03-01", "360_day")[0] - parse_date("2000-02-30", "360_day")[0]
    assert days == DAY
    with pytest.raises(ConfigError, match="a date of the calendar noleap"):
        parse_date("2000-02-29", "noleap")
    assert iso_text(decode([59], "days since 2000-01-01", "noleap")[0], "noleap") == "2000-03-01T00:00:00"


@pytest.mark.parametrize(
    "reference", ["1970-1-1", "1970-01-01T00:00:00", "1970-01-01 00:00:00.0", "1970-01-01 00:00:00 UTC"]
)
def test_references_may_be_spelt_in_many_ways(reference: str) -> None:
    assert decode([1], f"days since {reference}") == [DAY]


@pytest.mark.parametrize(
    ("values", "units", "message"),
    [
        ([0], "months since 1970-01-01", "time unit cannot be used"),
        ([0], "days", "time unit cannot be used"),
        ([0], "days since yesterday", "time reference cannot be read"),
        ([0, np.iinfo(np.int64).min], "ns since 1970-01-01", r"missing time\n.*index 1"),
        ([0.0, 1.0, np.nan], "days since 1970-01-01", r"missing time\n.*index 2"),
        ([0.0, np.inf], "days since 1970-01-01", "missing time"),
        ([0.0, 1.5], "seconds since 1970-01-01", r"not a whole second\n.*index 1"),
        ([0, 1500], "ms since 1970-01-01", r"not a whole second\n.*index 1"),
        ([b"2000"], "days since 1970-01-01", "not numeric"),
    ],
)
def test_unusable_times_are_refused_with_the_first_offending_index(values: object, units: str, message: str) -> None:
    with pytest.raises(SourceError, match=f"(?s){message}") as caught:
        decode(values, units)
    assert "s.zarr, array time" in str(caught.value)


def test_unknown_calendar_is_refused() -> None:
    with pytest.raises(SourceError, match="calendar lunar"):
        decode([0], "days since 1970-01-01", "lunar")


@given(st.integers(1, DAY), st.lists(st.integers(1, 9), min_size=1, max_size=6), st.data())
def test_segments_cover_the_axis_and_break_only_at_gaps(step: int, gaps: list[int], data: st.DataObject) -> None:
    lengths = [data.draw(st.integers(1, 4)) for _ in gaps]
    moves = [m for gap, length in zip(gaps, lengths, strict=True) for m in [gap + 1, *[1] * length]]
    seconds = step * np.cumsum([0, *moves], dtype=np.int64)
    found = find_segments(seconds, "standard", "s.zarr")
    np.testing.assert_array_equal(found.seconds(), seconds)
    assert (found.step_seconds, found.num_steps) == (step, seconds.size)
    assert [s.start for s in found.segments[1:]] == [s.stop for s in found.segments[:-1]]
    cuts = {s.start for s in found.segments[1:]}
    assert cuts == {i + 1 for i, move in enumerate(moves) if move > 1}
    rows = [(s.start, s.stop, s.seconds) for s in found.segments]
    assert axis_from_rows(rows, step, "standard") == found
    assert [(r.start, r.stop) for r in found.ranges()] == [(a, b) for a, b, _ in rows]


@given(st.lists(st.integers(0, 40), min_size=2, max_size=12, unique=True).map(sorted), st.integers(-5, 50))
def test_step_at_or_after_is_the_first_step_not_before(hours: list[int], at: int) -> None:
    seconds = np.array([0, 1, *(h + 2 for h in hours)], dtype=np.int64) * HOUR
    found = find_segments(seconds, "standard", "s.zarr")
    assert found.step_at_or_after(at * HOUR + 7) == int(np.searchsorted(seconds, at * HOUR + 7))
    assert found.step_at_or_after(at * HOUR) == int(np.searchsorted(seconds, at * HOUR))


def test_one_step_is_one_segment() -> None:
    found = find_segments(np.array([5 * DAY]), "standard", "s.zarr")
    assert (found.num_steps, len(found.segments)) == (1, 1)
    assert found.range_of("1970-01-06", "1970-01-06")[0].stop == 1


@pytest.mark.parametrize(
    ("days", "message"),
    [
        ([], "time axis is empty"),
        ([0, 1, 1, 2], r"repeats a time\n.*index 2"),
        ([0, 2, 1], r"is not sorted\n.*index 2"),
        ([0, 31, 59, 90], r"not regular\n.*index 1.*monthly"),
    ],
)
def test_unusable_axes_are_refused(days: list[int], message: str) -> None:
    with pytest.raises(SourceError, match=f"(?s){message}"):
        find_segments(np.array(days, dtype=np.int64) * DAY, "standard", "s.zarr")


@pytest.mark.parametrize(
    ("first", "last", "expected", "clipped"),
    [
        ("2000-01-02", "2000-01-02", (24, 48), False),  # a bare last date means its whole day
        ("2000-01-02", "2000-01-02 00:00", (24, 25), False),  # a date-time is inclusive as written
        ("2000-01-02 06:00", "2000-01-02T08:30:00Z", (30, 33), False),
        ("2000-01-01", "2000-01-03", (0, 72), False),
        ("1999-12-31", "2000-01-01", (0, 24), True),
        ("1999-12-31 23:30", "2000-01-01", (0, 24), False),
        ("2000-01-03", "2000-01-04 00:00", (48, 72), True),
        ("1990-01-01", "1995-01-01", (0, 0), True),
        ("2010-01-01", "2015-01-01", (72, 72), True),
    ],
)
def test_dates_give_steps_on_an_hourly_axis(first: str, last: str, expected: tuple[int, int], clipped: bool) -> None:
    found, cut = axis("2000-01-01", 72, HOUR).range_of(first, last)
    assert (found.start, found.stop) == expected
    assert cut == clipped


def test_daily_values_stamped_at_noon_are_not_called_clipped() -> None:
    daily = axis("2000-01-01 12:00", 3, DAY)
    found, clipped = daily.range_of("2000-01-01", "2000-01-03")
    assert ((found.start, found.stop), clipped) == ((0, 3), False)
    assert daily.range_of("1999-12-31", "2000-01-03")[1]
    assert daily.range_of("2000-01-01", "2000-01-04")[1]


def test_period_in_a_gap_is_empty() -> None:
    seconds = np.array([0, 1, 2, 9, 10], dtype=np.int64) * DAY
    found, clipped = find_segments(seconds, "standard", "s").range_of("1970-01-05", "1970-01-08")
    assert ((found.start, found.stop), clipped) == ((3, 3), False)


def test_reversed_period_is_refused() -> None:
    with pytest.raises(ConfigError, match="ends before it starts"):
        axis("2000-01-01", 3, DAY).range_of("2000-01-02", "2000-01-01")


@pytest.mark.parametrize(
    "text", ["2000", "01/02/2000", "2000-01-01 12", "2000-01-01 12:00:00.5", "", "2000-01-01+01:00"]
)
def test_dates_that_are_not_iso_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="date cannot be read"):
        parse_date(text, "standard")
