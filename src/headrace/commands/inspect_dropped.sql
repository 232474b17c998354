SELECT r.dataset_id, r.split, b.basin_id, r.reason, r.num_windows AS windows
FROM dropped AS r
JOIN basins AS b USING (dataset_id, basin)
WHERE r.num_windows > 0 AND ($dataset_id IS NULL OR r.dataset_id = $dataset_id)
ORDER BY windows DESC, r.dataset_id, r.split, b.basin_id, r.reason
