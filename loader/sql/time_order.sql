SELECT store_step
FROM time_order
WHERE dataset_id = $dataset_id
ORDER BY step
