"""One result row: what was measured, with what, on what; as JSON lines."""

import json
import subprocess
from datetime import date
from pathlib import Path

from headrace.loader.machine import hardware, versions


def machine() -> dict[str, object]:
    """Return what the numbers depend on besides the code."""
    found, libraries = hardware(), versions()
    return {
        "processor": found["processor"],
        "cores": found["cores"],
        "memory_gib": round(found["memory_bytes"] / 2**30, 1),
        "gpu": found["gpu"],
        "python": libraries.pop("python"),
        "libraries": libraries,
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


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
