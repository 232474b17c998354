"""Facts and contracts shared by both phases: configuration, grids, the window rule, moments, tables, manifest.

Nothing here does I/O on a store, and nothing here imports Dask, DuckDB or PyTorch.
"""
