SELECT basin, basin_id, store_row, splits
FROM basins
WHERE dataset_id = $dataset_id
ORDER BY basin
