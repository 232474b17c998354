SELECT r.dataset_id, r.split, b.basin_id, r.reason, r.num_windows AS windows
FROM dropped AS r
JOIN basins AS b USING (dataset_id, basin)
WHERE r.num_windows > 0 AND list_contains($datasets, r.dataset_id) AND list_contains($splits, r.split)
  AND (len($basins::VARCHAR[]) = 0 OR list_contains($basins::VARCHAR[], b.basin_id))
ORDER BY windows DESC, r.dataset_id, r.split, b.basin_id, r.reason
