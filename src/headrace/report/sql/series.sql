-- Variables over time: their facts, statistics of the training periods and observed values of the whole record.
SELECT v.dataset_id, v.variable, v.role, v."array", v.unit, v.present, v.missing_rule, s.count, s.mean, s.std, s.min, s.max,
       coalesce(r.observed, 0)::BIGINT AS observed
FROM variables AS v
LEFT JOIN (SELECT * FROM stats WHERE scope = 'dataset') AS s USING (dataset_id, variable)
LEFT JOIN (SELECT dataset_id, variable, sum(stop - start) AS observed FROM runs GROUP BY ALL) AS r
    USING (dataset_id, variable)
ORDER BY v.role, v."position", v.variable, v.dataset_id
