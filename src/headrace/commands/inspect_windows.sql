SELECT w.dataset_id, w.split, b.basin_id, w.start, w.stop, w.num_windows,
       w.start AS first_step, w.start + (w.num_windows - 1) * $stride AS last_step
FROM windows AS w
JOIN basins AS b USING (dataset_id, basin)
JOIN (SELECT unnest($datasets) AS dataset_id, unnest($starts) AS start, unnest($stops) AS stop) AS s
  ON s.dataset_id = w.dataset_id AND w.start < s.stop AND w.stop > s.start
WHERE list_contains($splits, w.split)
  AND (len($basins::VARCHAR[]) = 0 OR list_contains($basins::VARCHAR[], b.basin_id))
ORDER BY w.dataset_id, w.split, w.basin, w.start
