WITH spans AS (
  SELECT y.dataset_id, y.year, greatest(y.start, s.start) AS start, least(y.stop, s.stop) AS stop
  FROM years AS y
  JOIN (SELECT unnest($datasets) AS dataset_id, unnest($starts) AS start, unnest($stops) AS stop) AS s USING (dataset_id)
  WHERE y.start < s.stop AND y.stop > s.start
), lengths AS (
  SELECT dataset_id, year, sum(stop - start) AS steps FROM spans GROUP BY ALL
), seen AS (
  SELECT s.dataset_id, s.year, r.variable, sum(least(r.stop, s.stop) - greatest(r.start, s.start)) AS observed
  FROM spans AS s
  JOIN runs AS r ON r.dataset_id = s.dataset_id AND r.start < s.stop AND r.stop > s.start
  WHERE list_contains($variables, r.variable)
  GROUP BY ALL
)
SELECT l.dataset_id, v.variable, l.year, round(coalesce(s.observed, 0) / (l.steps * b.basins), 4) AS observed_share
FROM lengths AS l
JOIN (SELECT dataset_id, count(*) AS basins FROM basins GROUP BY dataset_id) AS b USING (dataset_id)
JOIN (SELECT DISTINCT dataset_id, variable FROM variables WHERE present AND role <> 'static') AS v USING (dataset_id)
LEFT JOIN seen AS s USING (dataset_id, year, variable)
WHERE list_contains($variables, v.variable)
ORDER BY l.dataset_id, v.variable, l.year
