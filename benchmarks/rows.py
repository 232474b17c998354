"""One result row: what was measured, with what, on what; as JSON lines."""

import json
import platform
import subprocess
from datetime import date
from importlib.metadata import version
from pathlib import Path

import psutil

_LIBRARIES = ("headrace", "numpy", "torch", "zarr", "dask", "duckdb", "pyarrow")


def machine() -> dict[str, object]:
    """Return what the numbers depend on besides the code."""
    model = next((ln.split(":", 1)[1].strip() for ln in _cpuinfo() if ln.startswith("model name")), platform.machine())
    return {
        "processor": model,
        "cores": psutil.cpu_count(logical=False),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in _LIBRARIES},
        "commit": _commit(),
        "date": date.today().isoformat(),
    }


def append(path: Path | None, rows: list[dict[str, object]]) -> None:
    """Append rows to a JSON-lines file."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, sort_keys=True) + "\n" for row in rows)


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
