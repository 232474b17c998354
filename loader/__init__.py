"""The second phase: tables → windows → tiles → rounds → pool → batches.

``open_index`` reads the tables, ``WindowLoader`` serves them; ``WindowDataset`` and ``ChunkBatchSampler`` are for
PyTorch's own ``DataLoader``. Only this package and the trainer import DuckDB and PyTorch; neither imports the indexer.
"""

from headrace.loader.batch import Batch
from headrace.loader.catalog import Index, open_index
from headrace.loader.dataset import WindowDataset
from headrace.loader.sampler import ChunkBatchSampler
from headrace.loader.window_loader import WindowLoader

__all__ = ["Batch", "ChunkBatchSampler", "Index", "WindowDataset", "WindowLoader", "open_index"]
