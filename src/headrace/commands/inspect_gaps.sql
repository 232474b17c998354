WITH edges AS (
  SELECT dataset_id, variable, basin, stop AS gap_start,
         lead(start) OVER (PARTITION BY dataset_id, variable, basin ORDER BY start) AS gap_stop
  FROM runs
)
SELECT e.dataset_id, e.variable, b.basin_id, e.gap_stop - e.gap_start AS missing_steps,
       strftime(s.time_start::TIMESTAMP + (e.gap_start - s.start) * to_seconds(d.step_seconds), '%Y-%m-%d %H:%M') AS from_time
FROM edges AS e
JOIN datasets AS d USING (dataset_id)
JOIN basins AS b USING (dataset_id, basin)
JOIN segments AS s ON s.dataset_id = e.dataset_id AND e.gap_start >= s.start AND e.gap_start < s.stop
WHERE e.gap_stop IS NOT NULL AND ($dataset_id IS NULL OR e.dataset_id = $dataset_id)
ORDER BY missing_steps DESC, e.dataset_id, e.variable, b.basin_id, e.gap_start
