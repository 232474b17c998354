WITH series AS (
  SELECT b.dataset_id, v.variable, b.basin, b.basin_id, s.start, s.stop
  FROM basins AS b
  JOIN variables AS v ON v.dataset_id = b.dataset_id AND v.present AND v.role <> 'static'
  JOIN (SELECT unnest($datasets) AS dataset_id, unnest($starts) AS start, unnest($stops) AS stop) AS s
    ON s.dataset_id = b.dataset_id AND s.start < s.stop
  WHERE list_contains($variables, v.variable)
    AND (len($basins::VARCHAR[]) = 0 OR list_contains($basins::VARCHAR[], b.basin_id))
), bounds AS (
  SELECT dataset_id, variable, basin, start AS start, start AS stop FROM series
  UNION ALL
  SELECT r.dataset_id, r.variable, r.basin, greatest(r.start, s.start), least(r.stop, s.stop)
  FROM runs AS r
  JOIN series AS s USING (dataset_id, variable, basin)
  WHERE r.start < s.stop AND r.stop > s.start
  UNION ALL
  SELECT dataset_id, variable, basin, stop AS start, stop AS stop FROM series
), edges AS (
  SELECT dataset_id, variable, basin, start AS gap_stop,
         lag(stop) OVER (PARTITION BY dataset_id, variable, basin ORDER BY start, stop) AS gap_start
  FROM bounds
)
SELECT e.dataset_id, e.variable, b.basin_id, e.gap_stop - e.gap_start AS missing_steps,
       e.gap_start AS first_step, e.gap_stop - 1 AS last_step
FROM edges AS e
JOIN basins AS b USING (dataset_id, basin)
WHERE e.gap_stop > e.gap_start
ORDER BY missing_steps DESC, e.dataset_id, e.variable, b.basin_id, e.gap_start
