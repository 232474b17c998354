SELECT basin, count, mean, m2, min, max
FROM moments
WHERE dataset_id = $dataset_id AND variable = $variable AND start >= $start AND stop <= $stop
ORDER BY basin, start
