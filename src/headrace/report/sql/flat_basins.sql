SELECT dataset_id, variable, count(*) AS basins
FROM stats
WHERE scope = 'basin' AND count > 1 AND min = max
GROUP BY dataset_id, variable
ORDER BY ALL
