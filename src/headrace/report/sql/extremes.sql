-- In how many basins the smallest or the largest training value of the data set is that basin's own.
SELECT d.dataset_id, d.variable, d.min, d.max, count(b.basin) AS basins, count(*) FILTER (b.min = d.min) AS with_min,
       count(*) FILTER (b.max = d.max) AS with_max
FROM stats AS d
LEFT JOIN stats AS b ON b.scope = 'basin' AND b.dataset_id = d.dataset_id AND b.variable = d.variable AND b.count > 0
WHERE d.scope = 'dataset' AND d.count > 0
GROUP BY d.dataset_id, d.variable, d.min, d.max
ORDER BY ALL
