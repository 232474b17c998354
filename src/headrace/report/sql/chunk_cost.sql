SELECT c.dataset_id, c.variable, any_value(v."array") AS array_name, any_value(v.shard_shape) AS shard_shape,
       count(*) AS objects, count(*) FILTER (state = 'absent') AS absent,
       count(*) FILTER (state = 'missing') AS only_missing, count(*) FILTER (state = 'error') AS unreadable,
       sum(stored_nbytes)::BIGINT AS stored_nbytes, max(stored_nbytes) AS largest_nbytes,
       sum(4 * (basin_stop - basin_start)::BIGINT * (time_stop - time_start))::BIGINT AS decoded_nbytes,
       max(basin_stop - basin_start) AS chunk_basins, max(time_stop - time_start) AS chunk_steps,
       max(basin_stop) AS last_row,
       count(DISTINCT basin_chunk) AS basin_chunks, count(DISTINCT time_chunk) AS time_chunks,
       max(basin_chunk) + 1 AS last_basin_chunk, max(time_chunk) + 1 AS last_time_chunk
FROM chunks AS c
JOIN variables AS v USING (dataset_id, variable)
GROUP BY c.dataset_id, c.variable
ORDER BY c.dataset_id, any_value(v.role), any_value(v."position")
