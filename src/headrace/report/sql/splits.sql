SELECT dataset_id, split, count(*) AS basins, count(*) FILTER (num_windows > 0) AS with_windows,
       sum(num_windows)::BIGINT AS windows
FROM window_counts
GROUP BY dataset_id, split
