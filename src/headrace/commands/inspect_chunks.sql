SELECT c.dataset_id, c.variable, v.array, coalesce(nullif(v.shard_shape, ''), v.chunk_shape) AS stored_shape, c.state,
       count(*) AS objects, round(sum(c.stored_nbytes) / 1e6, 3) AS stored_mb, sum(c.valid_count)::BIGINT AS observed
FROM chunks AS c
JOIN variables AS v USING (dataset_id, variable)
JOIN (SELECT unnest($datasets) AS dataset_id, unnest($stored_starts) AS start, unnest($stored_stops) AS stop) AS s
  ON s.dataset_id = c.dataset_id AND c.time_start < s.stop AND c.time_stop > s.start
WHERE list_contains($variables, c.variable) AND (
  len($basins::VARCHAR[]) = 0 OR EXISTS (
    FROM basins AS b
    WHERE b.dataset_id = c.dataset_id AND list_contains($basins::VARCHAR[], b.basin_id)
      AND b.store_row >= c.basin_start AND b.store_row < c.basin_stop
  )
)
GROUP BY ALL
ORDER BY c.dataset_id, c.variable, c.state
