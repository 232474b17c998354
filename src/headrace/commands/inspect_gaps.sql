WITH series AS (
  SELECT b.dataset_id, v.variable, b.basin, d.num_steps
  FROM basins AS b
  JOIN datasets AS d USING (dataset_id)
  JOIN variables AS v ON v.dataset_id = b.dataset_id AND v.present AND v.role <> 'static'
), bounds AS (
  SELECT dataset_id, variable, basin, start, stop FROM runs
  UNION ALL SELECT dataset_id, variable, basin, num_steps, num_steps FROM series
), edges AS (
  SELECT dataset_id, variable, basin, start AS gap_stop,
         coalesce(lag(stop) OVER (PARTITION BY dataset_id, variable, basin ORDER BY start, stop), 0) AS gap_start
  FROM bounds
)
SELECT e.dataset_id, e.variable, b.basin_id, e.gap_stop - e.gap_start AS missing_steps, e.gap_start AS first_step
FROM edges AS e
JOIN basins AS b USING (dataset_id, basin)
WHERE e.gap_stop > e.gap_start AND ($dataset_id IS NULL OR e.dataset_id = $dataset_id)
ORDER BY missing_steps DESC, e.dataset_id, e.variable, b.basin_id, e.gap_start
