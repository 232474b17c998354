SELECT variable, basin, count, mean, m2, min, max
FROM moments
WHERE dataset_id = $dataset_id AND list_contains($variables, variable) AND start >= $start AND stop <= $stop
ORDER BY variable, basin, start
