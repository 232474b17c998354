WITH years AS (
  SELECT dataset_id, year, start AS first, stop AS last, sum(stop - start) OVER (PARTITION BY dataset_id, year) AS steps
  FROM (
    SELECT unnest($year_datasets) AS dataset_id, unnest($years) AS year, unnest($starts) AS start, unnest($stops) AS stop
  )
), seen AS (
  SELECT y.dataset_id, y.year, r.variable, sum(least(r.stop, y.last) - greatest(r.start, y.first)) AS observed
  FROM years AS y
  JOIN runs AS r ON r.dataset_id = y.dataset_id AND r.start < y.last AND r.stop > y.first
  GROUP BY ALL
)
SELECT y.dataset_id, v.variable, y.year,
       round(coalesce(any_value(s.observed), 0) / (any_value(y.steps) * any_value(b.basins)), 4) AS observed_share
FROM years AS y
JOIN (SELECT dataset_id, count(*) AS basins FROM basins GROUP BY dataset_id) AS b USING (dataset_id)
JOIN (SELECT DISTINCT dataset_id, variable FROM variables WHERE present AND role <> 'static') AS v USING (dataset_id)
LEFT JOIN seen AS s USING (dataset_id, year, variable)
WHERE $dataset_id IS NULL OR y.dataset_id = $dataset_id
GROUP BY y.dataset_id, v.variable, y.year
ORDER BY y.dataset_id, v.variable, y.year
