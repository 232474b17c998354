"""Zarr stores to Parquet tables: the batch job that runs once. Dask lives here and nowhere else."""

from headrace.indexer.build import build_index
from headrace.indexer.progress import Progress
from headrace.indexer.report import BuildReport

__all__ = ["BuildReport", "Progress", "build_index"]
