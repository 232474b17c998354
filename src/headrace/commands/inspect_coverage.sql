WITH steps AS (
  SELECT s.dataset_id, s.start + g.i AS step,
         year(s.time_start::TIMESTAMP + g.i * to_seconds(d.step_seconds)) AS year
  FROM segments AS s
  JOIN datasets AS d USING (dataset_id), LATERAL (SELECT unnest(range(s.stop - s.start)) AS i) AS g
), years AS (
  SELECT dataset_id, year, min(step) AS first, max(step) + 1 AS stop, count(*) AS steps FROM steps GROUP BY ALL
), seen AS (
  SELECT y.dataset_id, y.year, r.variable, sum(least(r.stop, y.stop) - greatest(r.start, y.first)) AS observed
  FROM years AS y
  JOIN runs AS r ON r.dataset_id = y.dataset_id AND r.start < y.stop AND r.stop > y.first
  GROUP BY ALL
)
SELECT y.dataset_id, v.variable, y.year, round(coalesce(s.observed, 0) / (y.steps * d.num_basins), 4) AS observed_share
FROM years AS y
JOIN datasets AS d USING (dataset_id)
JOIN (SELECT DISTINCT dataset_id, variable FROM variables WHERE present AND role <> 'static') AS v USING (dataset_id)
LEFT JOIN seen AS s USING (dataset_id, year, variable)
WHERE $dataset_id IS NULL OR y.dataset_id = $dataset_id
ORDER BY y.dataset_id, v.variable, y.year
