SELECT basin_chunk // $basin_step AS row_number, time_chunk // $time_step AS column_number, max(stored_nbytes) AS nbytes,
       count(*) AS objects, count(*) FILTER (state = 'absent') AS absent,
       count(*) FILTER (state = 'missing') AS only_missing, count(*) FILTER (state = 'error') AS unreadable
FROM chunks
WHERE dataset_id = $dataset_id AND variable = $variable
GROUP BY ALL
