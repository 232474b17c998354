SELECT (r.basin::BIGINT * $num_rows // $num_basins)::INTEGER AS "row", y.year,
       sum(least(r.stop, y.stop) - greatest(r.start, y.start))::BIGINT AS observed
FROM runs AS r
JOIN years AS y ON y.dataset_id = r.dataset_id AND r.start < y.stop AND r.stop > y.start
WHERE r.dataset_id = $dataset_id AND list_contains($variables, r.variable)
GROUP BY ALL
