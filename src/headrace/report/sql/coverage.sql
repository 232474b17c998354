-- Observed steps of each group of neighbouring basins in each calendar year; a year cut by a gap has several spans.
SELECT r.variable, r.basin // $group_size AS group_number, y.year,
       sum(least(r.stop, y.stop) - greatest(r.start, y.start))::BIGINT AS observed
FROM runs AS r
JOIN (SELECT * FROM years WHERE dataset_id = $dataset_id) AS y ON r.start < y.stop AND r.stop > y.start
WHERE r.dataset_id = $dataset_id
GROUP BY ALL
