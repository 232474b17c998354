SELECT variable, basin, start, stop
FROM runs
WHERE dataset_id = $dataset_id AND list_contains($variables, variable)
ORDER BY variable, basin, start
