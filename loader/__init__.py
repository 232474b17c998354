"""The second phase: tables → windows → tiles → rounds → pool → batches.

``open_index`` reads the tables, ``WindowLoader`` serves them. Only this package and the trainer import DuckDB and
PyTorch; neither imports the indexer.
"""

from headrace.loader.batch import Batch
from headrace.loader.catalog import Index, open_index
from headrace.loader.window_loader import WindowLoader

__all__ = ["Batch", "Index", "WindowLoader", "open_index"]
