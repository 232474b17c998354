SELECT w.dataset_id, w.split, b.basin_id, w.start, w.stop, w.num_windows
FROM windows AS w
JOIN basins AS b USING (dataset_id, basin)
WHERE $dataset_id IS NULL OR w.dataset_id = $dataset_id
ORDER BY w.dataset_id, w.split, w.basin, w.start
