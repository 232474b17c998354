SELECT basin, start, stop
FROM runs
WHERE dataset_id = $dataset_id AND variable = $variable
ORDER BY basin, start
