SELECT variable, basin, value
FROM statics
WHERE dataset_id = $dataset_id
ORDER BY variable, basin
