SELECT scope, dataset_id, variable, count, mean, std, min, max
FROM stats
WHERE list_contains($variables, variable)
  AND (scope = 'global' AND $all_datasets OR scope = 'dataset' AND list_contains($datasets, dataset_id))
ORDER BY variable, scope DESC, dataset_id
