SELECT dataset_id, split, start, stop
FROM periods
ORDER BY dataset_id, split
