SELECT store, "array", variable, kind, metadata, objects, content, decode_rule
FROM arrays
WHERE dataset_id = $dataset_id
ORDER BY store, "array", variable
