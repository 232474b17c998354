SELECT variable, basin_chunk, time_chunk, state, stored_nbytes, fingerprint
FROM chunks
WHERE dataset_id = $dataset_id AND list_contains($variables, variable)
ORDER BY variable, basin_chunk, time_chunk
