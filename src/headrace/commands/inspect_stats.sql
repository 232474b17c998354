SELECT scope, dataset_id, variable, count, mean, std, min, max
FROM stats
WHERE scope <> 'basin' AND ($dataset_id IS NULL OR dataset_id = $dataset_id)
ORDER BY variable, scope DESC, dataset_id
