SELECT segment, start, stop, time_start
FROM segments
WHERE dataset_id = $dataset_id
ORDER BY segment
