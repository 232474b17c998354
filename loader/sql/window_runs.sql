-- The table's rows lie in the order (basin, start) within a split, and DuckDB keeps the order of a file.
SELECT basin, start, stop, num_windows
FROM windows
WHERE split = $split AND dataset_id = $dataset_id
