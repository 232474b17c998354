"""The views over the tables of an index: questions that people ask it, in DuckDB's SQL.

The indexer writes them into ``views.sql``, for a plain DuckDB shell; the loader puts them into its own connection.
Months are written out as step ranges, because SQL knows no 360-day calendar.
"""

from collections.abc import Mapping
from typing import Final

import cftime
import numpy as np

from headrace.schemas.dates import EPOCH
from headrace.schemas.tables import TABLES
from headrace.schemas.time_axis import Segment, TimeAxis

VIEWS: Final = ("months", "years", "coverage", "gaps", "time_gaps", "window_counts", "why_dropped", "read_cost")
"""Names of the views."""
_GREGORIAN: Final = ("standard", "gregorian", "proleptic_gregorian")
_FIRST_GREGORIAN: Final = 12 * 1583
"""January of the first whole year in which the calendars above agree."""

_CALENDAR = """
-- Steps of each calendar month of each data set; a month that a gap in the time axis cuts has several rows.
CREATE OR REPLACE VIEW months AS
SELECT dataset_id, segment, (first_month + i) // 12 AS year, (first_month + i) % 12 + 1 AS month,
       edges[i + 1] AS start, edges[i + 2] AS stop
FROM (
    SELECT *, unnest(range(len(edges) - 1)) AS i
    FROM (VALUES
{rows}
    ) AS t(dataset_id, segment, first_month, edges)
)
WHERE edges[i + 2] > edges[i + 1];

-- The same for years.
CREATE OR REPLACE VIEW years AS
SELECT dataset_id, segment, year, min(start) AS start, max(stop) AS stop
FROM months
GROUP BY dataset_id, segment, year
ORDER BY ALL;
"""

_QUESTIONS = """
-- Observed share of each variable, basin and calendar year.
CREATE OR REPLACE VIEW coverage AS
WITH spans AS (
    SELECT b.dataset_id, v.variable, b.basin, b.basin_id, y.year, y.start, y.stop
    FROM basins b
    JOIN variables v ON v.dataset_id = b.dataset_id AND v.present AND v.role <> 'static'
    JOIN years y ON y.dataset_id = b.dataset_id
), seen AS (
    SELECT s.dataset_id, s.variable, s.basin, s.year,
           sum(least(r.stop, s.stop) - greatest(r.start, s.start)) AS observed
    FROM spans s
    JOIN runs r USING (dataset_id, variable, basin)
    WHERE r.start < s.stop AND r.stop > s.start
    GROUP BY ALL
)
SELECT s.dataset_id, s.basin_id, s.year, s.variable, sum(s.stop - s.start)::BIGINT AS steps,
       coalesce(any_value(n.observed), 0)::BIGINT AS observed_steps, observed_steps / steps AS observed_share
FROM spans s
LEFT JOIN seen n USING (dataset_id, variable, basin, year)
GROUP BY s.dataset_id, s.basin_id, s.year, s.variable
ORDER BY ALL;

-- Stretches in which a variable of a basin is missing.
CREATE OR REPLACE VIEW gaps AS
WITH edges AS (
    SELECT b.dataset_id, v.variable, b.basin, b.basin_id, d.num_steps
    FROM basins b
    JOIN datasets d ON d.dataset_id = b.dataset_id
    JOIN variables v ON v.dataset_id = b.dataset_id AND v.present AND v.role <> 'static'
), bounds AS (
    SELECT dataset_id, variable, basin, 0 AS start, 0 AS stop FROM edges
    UNION ALL SELECT dataset_id, variable, basin, start, stop FROM runs
    UNION ALL SELECT dataset_id, variable, basin, num_steps, num_steps FROM edges
), pairs AS (
    SELECT dataset_id, variable, basin, start AS gap_stop,
           lag(stop) OVER (PARTITION BY dataset_id, variable, basin ORDER BY start, stop) AS gap_start
    FROM bounds
)
SELECT p.dataset_id, b.basin_id, p.variable, p.gap_start AS start, p.gap_stop AS stop,
       p.gap_stop - p.gap_start AS num_steps
FROM pairs p
JOIN basins b ON b.dataset_id = p.dataset_id AND b.basin = p.basin
WHERE p.gap_stop > p.gap_start
ORDER BY ALL;

-- Places where the time axis itself jumps.
CREATE OR REPLACE VIEW time_gaps AS
SELECT s.dataset_id, s.start AS step, s.time_start AS resumes_at
FROM segments s
WHERE s.segment > 0
ORDER BY ALL;

-- Windows of each split and basin.
CREATE OR REPLACE VIEW window_counts AS
SELECT b.dataset_id, p.split, b.basin_id, coalesce(sum(w.num_windows), 0)::BIGINT AS num_windows
FROM basins b
JOIN periods p ON p.dataset_id = b.dataset_id AND list_contains(string_split(b.splits, ','), p.split)
LEFT JOIN windows w ON w.dataset_id = b.dataset_id AND w.split = p.split AND w.basin = b.basin
GROUP BY b.dataset_id, p.split, b.basin_id
ORDER BY ALL;

-- Why windows are not served.
CREATE OR REPLACE VIEW why_dropped AS
SELECT dataset_id, split, reason, sum(num_windows)::BIGINT AS num_windows, count(*) AS num_basins
FROM dropped
GROUP BY dataset_id, split, reason
ORDER BY ALL;

-- What one pass over each variable costs: stored objects by state, stored bytes, decoded bytes as float32.
CREATE OR REPLACE VIEW read_cost AS
SELECT dataset_id, variable, count(*) AS num_chunks,
       count(*) FILTER (state = 'data') AS with_data, count(*) FILTER (state = 'absent') AS absent,
       count(*) FILTER (state = 'missing') AS only_missing, count(*) FILTER (state = 'error') AS unreadable,
       sum(stored_nbytes)::BIGINT AS stored_nbytes,
       sum(4 * (basin_stop - basin_start)::BIGINT * (time_stop - time_start))::BIGINT AS decoded_nbytes
FROM chunks
GROUP BY dataset_id, variable
ORDER BY ALL;
"""


def view_statements(axes: Mapping[str, TimeAxis]) -> str:
    """Return the statements that create :data:`VIEWS` where every table is there by its name.

    Parameters
    ----------
    axes
        Data set → its time axis.
    """
    rows = [
        f"    ({_quoted(name)}, {number}, {first_month}, {edges})"
        for name, axis in axes.items()
        for number, segment in enumerate(axis.segments)
        for first_month, edges in [_months_of(axis, segment)]
    ]
    return _CALENDAR.format(rows=",\n".join(rows)) + _QUESTIONS


def views_sql(axes: Mapping[str, TimeAxis]) -> str:
    """Return the text of ``views.sql``: the tables, by paths relative to the folder of the index, and the views."""
    tables = "\n".join(
        f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{name}.parquet');" for name in sorted(TABLES)
    )
    return f"-- Run inside the index folder: duckdb -init views.sql\n\n{tables}\n{view_statements(axes)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _months_of(axis: TimeAxis, segment: Segment) -> tuple[int, list[int]]:
    """Cut a segment at the first step of each month.

    Returns
    -------
    tuple
        The first month as 12 · year + month − 1, and the steps at which it and each later month begin, with the step
        behind the last.
    """
    last = segment.seconds + (segment.stop - segment.start - 1) * axis.step_seconds
    dates = [cftime.num2date(s, EPOCH, calendar=axis.calendar) for s in (segment.seconds, last)]
    first_month, last_month = (12 * date.year + date.month - 1 for date in dates)
    begins = _begins(first_month + 1, last_month, axis.calendar)
    edges = [segment.start - (segment.seconds - seconds) // axis.step_seconds for seconds in begins]
    return first_month, [segment.start, *edges, segment.stop]


def _begins(first: int, last: int, calendar: str) -> list[int]:
    """Return the seconds at which months begin, the last included, each as 12 · year + month − 1."""
    if calendar in _GREGORIAN and first >= _FIRST_GREGORIAN:  # cftime takes 20 µs for each of hundreds of months
        months = np.arange(first, last + 1) - 12 * 1970
        return months.astype("datetime64[M]").astype("datetime64[s]").astype(np.int64).tolist()
    dates = [cftime.datetime(month // 12, month % 12 + 1, 1, calendar=calendar) for month in range(first, last + 1)]
    return [round(cftime.date2num(date, EPOCH, calendar=calendar)) for date in dates]
