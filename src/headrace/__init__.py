"""Headrace keeps a training loop fed from Zarr stores that do not fit in memory.

Index once, then stream shuffled windows at memory speed:

>>> import headrace  # doctest: +SKIP
>>> index = headrace.open_index("index/")  # doctest: +SKIP
>>> loader = headrace.WindowLoader(index, split="train")  # doctest: +SKIP
>>> for batch in loader:
...     ...  # doctest: +SKIP

Nothing heavy is imported before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.indexer import build_index
    from headrace.loader import Batch, ChunkBatchSampler, Index, WindowDataset, WindowLoader, open_index
    from headrace.schemas.config import Config
    from headrace.schemas.config_io import load_config
    from headrace.schemas.errors import HeadraceError
    from headrace.schemas.windows import WindowSpec

__version__ = "0.1.0"

_HOME = {
    "Batch": "headrace.loader",
    "ChunkBatchSampler": "headrace.loader",
    "Config": "headrace.schemas.config",
    "HeadraceError": "headrace.schemas.errors",
    "Index": "headrace.loader",
    "WindowDataset": "headrace.loader",
    "WindowLoader": "headrace.loader",
    "WindowSpec": "headrace.schemas.windows",
    "build_index": "headrace.indexer",
    "load_config": "headrace.schemas.config_io",
    "open_index": "headrace.loader",
}

__all__ = [
    "Batch",
    "ChunkBatchSampler",
    "Config",
    "HeadraceError",
    "Index",
    "WindowDataset",
    "WindowLoader",
    "WindowSpec",
    "__version__",
    "build_index",
    "load_config",
    "open_index",
]


def __getattr__(name: str) -> object:
    """Import a public name from its home when it is first asked for."""
    if name not in _HOME:
        msg = f"module 'headrace' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
