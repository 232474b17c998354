"""What a measurement depends on besides the code: processor, memory, GPU, and versions of the libraries at work."""

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import torch

_LIBRARIES = ("headrace", "numpy", "torch", "zarr", "dask", "duckdb", "pyarrow")


def hardware() -> dict[str, Any]:
    """Return processor, physical and logical cores, memory in bytes, and the GPU or None."""
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=False),
        "threads": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decode, plan and gather."""
    return {"python": platform.python_version()} | {name: version(name) for name in _LIBRARIES}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
