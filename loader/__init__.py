"""The second phase: tables → windows → tiles → rounds → pool → batches.

``open_index`` reads the tables, ``WindowLoader`` serves them; ``WindowDataset`` and ``ChunkBatchSampler`` are for
PyTorch's own ``DataLoader``. Only this package and the trainer import DuckDB and PyTorch; neither imports the indexer.

Names are loaded on first use, so that looking at an index costs no PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.loader.batch import Batch as Batch
    from headrace.loader.catalog import Index as Index
    from headrace.loader.catalog import open_index as open_index
    from headrace.loader.dataset import WindowDataset as WindowDataset
    from headrace.loader.sampler import ChunkBatchSampler as ChunkBatchSampler
    from headrace.loader.window_loader import WindowLoader as WindowLoader

_MODULE_OF = {
    "Batch": "batch",
    "ChunkBatchSampler": "sampler",
    "Index": "catalog",
    "WindowDataset": "dataset",
    "WindowLoader": "window_loader",
    "open_index": "catalog",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Load a public name."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
