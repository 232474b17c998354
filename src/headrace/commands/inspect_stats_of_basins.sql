SELECT s.dataset_id, b.basin_id, s.variable, s.count, s.mean, s.std, s.min, s.max
FROM stats AS s
JOIN basins AS b USING (dataset_id, basin)
WHERE s.scope = 'basin' AND list_contains($datasets, s.dataset_id) AND list_contains($variables, s.variable)
  AND list_contains($basins, b.basin_id)
ORDER BY s.dataset_id, b.basin_id, s.variable
