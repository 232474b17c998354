SELECT c.dataset_id, c.variable, v.array, coalesce(nullif(v.shard_shape, ''), v.chunk_shape) AS stored_shape, c.state,
       count(*) AS objects, round(sum(c.stored_nbytes) / 1e6, 3) AS stored_mb, sum(c.valid_count)::BIGINT AS observed
FROM chunks AS c
JOIN variables AS v USING (dataset_id, variable)
WHERE $dataset_id IS NULL OR c.dataset_id = $dataset_id
GROUP BY ALL
ORDER BY c.dataset_id, c.variable, c.state
