WITH spans AS (
  SELECT y.dataset_id, y.year, greatest(y.start, s.start) AS start, least(y.stop, s.stop) AS stop
  FROM years AS y
  JOIN (SELECT unnest($datasets) AS dataset_id, unnest($starts) AS start, unnest($stops) AS stop) AS s USING (dataset_id)
  WHERE y.start < s.stop AND y.stop > s.start
), lengths AS (
  SELECT dataset_id, year, sum(stop - start) AS steps FROM spans GROUP BY ALL
), seen AS (
  SELECT s.dataset_id, s.year, r.basin, r.variable,
         sum(least(r.stop, s.stop) - greatest(r.start, s.start)) AS observed
  FROM spans AS s
  JOIN runs AS r ON r.dataset_id = s.dataset_id AND r.start < s.stop AND r.stop > s.start
  JOIN basins AS b ON b.dataset_id = r.dataset_id AND b.basin = r.basin
  WHERE list_contains($variables, r.variable) AND list_contains($basins, b.basin_id)
  GROUP BY ALL
)
SELECT l.dataset_id, b.basin_id, v.variable, l.year, round(coalesce(s.observed, 0) / l.steps, 4) AS observed_share
FROM lengths AS l
JOIN basins AS b USING (dataset_id)
JOIN (SELECT DISTINCT dataset_id, variable FROM variables WHERE present AND role <> 'static') AS v USING (dataset_id)
LEFT JOIN seen AS s ON s.dataset_id = l.dataset_id AND s.year = l.year AND s.variable = v.variable AND s.basin = b.basin
WHERE list_contains($variables, v.variable) AND list_contains($basins, b.basin_id)
ORDER BY l.dataset_id, b.basin_id, v.variable, l.year
