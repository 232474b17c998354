-- Target steps that two splits of a data set have in common, in the same basins.
SELECT a.dataset_id, a.split AS first_split, b.split AS second_split,
       least(a.stop, b.stop) - greatest(a.start, b.start) AS steps, count(*) AS basins
FROM periods AS a
JOIN periods AS b ON b.dataset_id = a.dataset_id AND a.start < b.stop AND b.start < a.stop
    AND array_position(['train', 'valid', 'test'], a.split) < array_position(['train', 'valid', 'test'], b.split)
JOIN basins AS s ON s.dataset_id = a.dataset_id AND list_contains(string_split(s.splits, ','), a.split)
    AND list_contains(string_split(s.splits, ','), b.split)
GROUP BY ALL
ORDER BY ALL
