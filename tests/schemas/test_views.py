"""Months and years of the views are those of the data set's own calendar, whatever its steps and gaps."""

from itertools import groupby

import cftime
import duckdb
import numpy as np
import pytest

from headrace.schemas.dates import EPOCH, parse_date
from headrace.schemas.tables import TABLES
from headrace.schemas.time_axis import TimeAxis, find_segments
from headrace.schemas.views import VIEWS, view_statements

HOUR, DAY = 3600, 86_400
CASES = {
    "daily": ("standard", "1999-11-15", DAY, 500, {}),
    "no leap day": ("noleap", "2000-02-27", DAY, 400, {}),
    "days of thirty": ("360_day", "2000-02-28", DAY, 800, {}),
    "hours": ("proleptic_gregorian", "2000-02-28 05:00", HOUR, 2000, {}),
    "three hours": ("standard", "2000-12-30 22:30", 3 * HOUR, 300, {}),
    "at noon": ("standard", "2000-01-31 12:00", DAY, 70, {}),
    "gaps inside a month and over years": ("standard", "2000-01-10", DAY, 120, {5: 3, 50: 700}),
    "one step": ("standard", "2000-01-10", DAY, 1, {}),
}


def axis_of(calendar, begin, step, count, gaps):
    positions = np.arange(count)
    for after, missing in gaps.items():
        positions[after + 1 :] += missing
    return find_segments(parse_date(begin, calendar)[0] + step * positions, calendar, "here")


def steps_by(axis: TimeAxis, key):
    """Runs of steps of one segment whose dates have the same key, by looking at every step."""
    dates = cftime.num2date(axis.seconds(), EPOCH, calendar=axis.calendar)
    segment_of = [number for number, s in enumerate(axis.segments) for _ in range(s.stop - s.start)]
    for (segment, value), group in groupby(range(axis.num_steps), lambda i: (segment_of[i], key(dates[i]))):
        steps = list(group)
        yield segment, value, steps[0], steps[-1] + 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_months_and_years_are_those_of_the_dates(case):
    axis = axis_of(*case)
    other = axis_of("standard", "1990-01-01", DAY, 40, {})
    with duckdb.connect() as connection:
        for table in TABLES.values():
            connection.register(f"empty_{table.name}", table.schema.empty_table())
            connection.execute(f"CREATE VIEW {table.name} AS FROM empty_{table.name}")
        connection.execute(view_statements({"it's": axis, "other": other}))
        asked = "SELECT segment, {}, start, stop FROM {} WHERE dataset_id = 'it''s' ORDER BY start"
        months = connection.execute(asked.format("(year, month)", "months")).fetchall()
        years = connection.execute(asked.format("year", "years")).fetchall()
        assert connection.execute("SELECT count(*) FROM months WHERE dataset_id = 'other'").fetchall() == [(2,)]
        found = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert [(s, tuple(m.values()) if isinstance(m, dict) else m, a, b) for s, m, a, b in months] == list(
        steps_by(axis, lambda date: (date.year, date.month))
    )
    assert years == list(steps_by(axis, lambda date: date.year))
    assert set(VIEWS) <= {name for (name,) in found}
