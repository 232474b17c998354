SELECT dataset_id, timeseries_uri, num_basins, num_steps, step_seconds, calendar, weight, fingerprint
FROM datasets
ORDER BY dataset_id
