"""Build an index in this thread: the scan of a tiny store takes less time than starting a Dask cluster."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from headrace.indexer import build as build_module
from headrace.indexer import build_index
from headrace.indexer.distribute import ScanTask, run_task
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config


def build_here(data: Mapping[str, Any] | Config, out: Path) -> Path:
    """Index the stores that a configuration names, without Dask, and return the folder of the index."""
    config = data if isinstance(data, Config) else parse_config(dict(data))
    with mock.patch.object(build_module, "run_tasks", _run_here):
        build_index(config, out)
    return out


def _run_here(tasks: Sequence[ScanTask], *_: object, **__: object) -> None:
    for task in tasks:
        run_task(task)
