WITH served AS (
  SELECT dataset_id, split, count(DISTINCT basin) AS basins_with_windows, sum(num_windows)::BIGINT AS windows
  FROM windows GROUP BY ALL
), lost AS (
  SELECT dataset_id, split, sum(num_windows)::BIGINT AS dropped FROM dropped GROUP BY ALL
), members AS (
  SELECT dataset_id, split, count(*) AS basins
  FROM (SELECT dataset_id, unnest(string_split(splits, ',')) AS split FROM basins) GROUP BY ALL
)
SELECT p.dataset_id, p.split, p.time_start[:10] AS first, p.time_last[:10] AS last, coalesce(m.basins, 0) AS basins,
       coalesce(s.basins_with_windows, 0) AS with_windows, coalesce(s.windows, 0) AS windows,
       coalesce(l.dropped, 0) AS dropped
FROM periods AS p
LEFT JOIN members AS m USING (dataset_id, split)
LEFT JOIN served AS s USING (dataset_id, split)
LEFT JOIN lost AS l USING (dataset_id, split)
WHERE list_contains($datasets, p.dataset_id) AND list_contains($splits, p.split)
ORDER BY ALL
