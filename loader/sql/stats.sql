SELECT *
FROM stats
