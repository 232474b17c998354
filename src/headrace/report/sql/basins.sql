-- Windows and observed share of the targets of the basins with the fewest windows to train on.
WITH counted AS (
    SELECT dataset_id, basin, sum(num_windows) FILTER (split = 'train') AS train,
           sum(num_windows) FILTER (split = 'valid') AS valid, sum(num_windows) FILTER (split = 'test') AS test
    FROM windows
    GROUP BY dataset_id, basin
), seen AS (
    SELECT r.dataset_id, r.basin, sum(r.stop - r.start) AS observed
    FROM runs AS r
    JOIN variables AS v ON v.dataset_id = r.dataset_id AND v.variable = r.variable AND v.role = 'target'
    GROUP BY r.dataset_id, r.basin
), targets AS (
    SELECT dataset_id, count(*) AS number FROM variables WHERE role = 'target' AND present GROUP BY dataset_id
)
SELECT b.dataset_id, b.basin_id, b.splits, coalesce(c.train, 0)::BIGINT AS train, coalesce(c.valid, 0)::BIGINT AS valid,
       coalesce(c.test, 0)::BIGINT AS test,
       coalesce(s.observed, 0)::DOUBLE / (d.num_steps * greatest(coalesce(t.number, 0), 1)) AS target_share
FROM basins AS b
JOIN datasets AS d USING (dataset_id)
LEFT JOIN targets AS t USING (dataset_id)
LEFT JOIN counted AS c ON c.dataset_id = b.dataset_id AND c.basin = b.basin
LEFT JOIN seen AS s ON s.dataset_id = b.dataset_id AND s.basin = b.basin
ORDER BY train, b.dataset_id, b.basin
LIMIT $most
