"""A process that has another tool and answers questions about it, in an environment that nothing else looks into.

Only the named packages are installed, without what they depend on. NumPy, pandas, xarray, zarr and torch are those of
the environment that the tests run in.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tree import REPOSITORY


def install(requirements: Sequence[str]) -> Path:
    """Return the folder that holds packages; install them there first where it is missing, which needs a network.

    Parameters
    ----------
    requirements
        Pinned, such as ``scipy==1.17.1``; the first one names the folder.
    """
    folder = REPOSITORY / ".cache" / requirements[0].replace("==", "-")
    if not folder.is_dir():
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            made = Path(temporary) / "packages"
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", "--target", str(made), *requirements], check=True)
            made.rename(folder)
    return folder


class ToolProcess:
    """The process, for the length of a ``with`` block.

    Parameters
    ----------
    requirements
        What to install for it.
    jobs
        The program: each line of its input is a question, each line of its output the answer.
    """

    def __init__(self, requirements: Sequence[str], jobs: Path) -> None:
        self._requirements, self._jobs = requirements, jobs

    def __enter__(self) -> Self:
        """Start it."""
        environment = {**os.environ, "PYTHONPATH": str(install(self._requirements)), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, str(self._jobs)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
        return self

    def ask(self, ask: str, **question: Any) -> Any:
        """Return the answer to one question; raise ValueError with the tool's message where it refuses."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": ask, **question}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            name = self._requirements[0]
            raise RuntimeError(f"{name}'s process ended with {self._process.wait()}; its error output says why")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise ValueError(reply["error"])
        return reply["answer"]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it: its input ends."""
        self._process.communicate()
