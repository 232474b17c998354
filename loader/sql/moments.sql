-- The table's rows lie in the order (basin, start) within a variable, and DuckDB keeps the order of a file.
SELECT basin, count, mean, m2
FROM moments
WHERE dataset_id = $dataset_id AND variable = $variable AND start >= $start AND stop <= $stop
