SELECT w.dataset_id, b.basin_id, w.segment, w.basin, w.start, w.stop, w.num_windows
FROM windows AS w
JOIN basins AS b ON b.dataset_id = w.dataset_id AND b.basin = w.basin
WHERE w.split = $split AND list_contains($dataset_ids, w.dataset_id)
ORDER BY w.dataset_id, w.basin, w.start
