SELECT dataset_id, variable, role, "array", unit, model_fill_value, present, "position", decode_rule
FROM variables
ORDER BY dataset_id, role, "position"
