"""``views.sql``: questions a plain DuckDB user asks an index, as views over the tables beside it.

``cd INDEX && duckdb -init views.sql`` needs no Headrace. Years are written out as step ranges, because SQL knows no
360-day calendar.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import cftime

from headrace.indexer.facts import DatasetFacts
from headrace.schemas.dates import EPOCH
from headrace.schemas.tables import TABLES
from headrace.schemas.time_axis import TimeAxis

_VIEWS = """
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


def views_sql(datasets: Sequence[DatasetFacts]) -> str:
    """Return the text of ``views.sql``."""
    tables = "\n".join(
        f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{name}.parquet');" for name in sorted(TABLES)
    )
    rows = [row for dataset in datasets for row in _years(dataset)]
    listed = ",\n".join(f"    ({_quoted(name)}, {year}, {start}, {stop})" for name, year, start, stop in rows)
    years = f"CREATE OR REPLACE VIEW years AS SELECT * FROM (VALUES\n{listed}\n) AS t(dataset_id, year, start, stop);"
    head = "-- Run inside the index folder: duckdb -init views.sql"
    note = "-- Steps of each calendar year; a year cut by a gap has several rows."
    return f"{head}\n\n{tables}\n\n{note}\n{years}\n{_VIEWS}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _years(dataset: DatasetFacts) -> Iterable[tuple[str, int, int, int]]:
    axis = dataset.axis
    for segment in axis.segments:
        for year, start, stop in _years_of(axis, segment.seconds, segment.stop - segment.start):
            yield dataset.dataset_id, year, segment.start + start, segment.start + stop


def _years_of(axis: TimeAxis, seconds: int, num_steps: int) -> Iterable[tuple[int, int, int]]:
    """Cut a segment at the first step of each year; yields (year, start, stop) relative to the segment."""
    last = seconds + (num_steps - 1) * axis.step_seconds
    first_year, last_year = (cftime.num2date(s, EPOCH, calendar=axis.calendar).year for s in (seconds, last))
    edges = [0]
    for year in range(first_year + 1, last_year + 1):
        start = round(
            cftime.date2num(cftime.datetime(year, 1, 1, calendar=axis.calendar), EPOCH, calendar=axis.calendar)
        )
        edges.append(-(-(start - seconds) // axis.step_seconds))
    edges.append(num_steps)
    for year, (start, stop) in enumerate(pairwise(edges), start=first_year):
        if stop > start:
            yield year, start, stop
