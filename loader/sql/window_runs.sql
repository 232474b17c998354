SELECT basin, start, stop, num_windows
FROM windows
WHERE split = $split AND dataset_id = $dataset_id
ORDER BY basin, start
