"""A process that has torchhydro 0.2.0 and answers questions about it; see `torchhydro_jobs`.

Only the package itself is installed, without what it depends on, into a folder that nothing else looks into. NumPy,
pandas, xarray, zarr and torch are those of the environment that the tests run in.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tree import REPOSITORY

VERSION = "0.2.0"
JOBS = Path(__file__).with_name("torchhydro_jobs.py")
CACHE = REPOSITORY / ".cache" / f"torchhydro-{VERSION}"


def install() -> Path:
    """Return the folder that holds the package; install it there first where it is missing, which needs a network."""
    if not CACHE.is_dir():
        CACHE.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
            made = Path(folder) / "packages"
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", "--target", str(made), f"torchhydro=={VERSION}"], check=True)
            made.rename(CACHE)
    return CACHE


class Torchhydro:
    """The process, for the length of a ``with`` block."""

    def __enter__(self) -> Self:
        """Start it."""
        environment = {**os.environ, "PYTHONPATH": str(install()), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, str(JOBS)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
        return self

    def ask(self, ask: str, **question: Any) -> Any:
        """Return the answer to one question; raise ValueError with torchhydro's message where it refuses."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": ask, **question}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"torchhydro's process ended with {self._process.wait()}; its error output says why")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise ValueError(reply["error"])
        return reply["answer"]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it: its input ends."""
        self._process.communicate()
