"""A Dask cluster of real processes on loopback, as ``dask scheduler`` and ``dask worker`` start them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

SECONDS = 60


@contextlib.contextmanager
def dask_cluster(folder: Path, *, workers: Sequence[Sequence[str]] = ((), ())) -> Iterator[Path]:
    """Start a scheduler and a worker per entry, which holds further arguments; give the scheduler file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scheduler.json"
    with contextlib.ExitStack() as stack:
        place = ["--host", "127.0.0.1", "--no-dashboard"]
        stack.enter_context(_running(folder, "scheduler", *place, "--port", "0", "--scheduler-file", str(file)))
        _wait(file.is_file)
        for arguments in workers:
            usual = [*place, "--nthreads", "2", "--local-directory", str(folder)]
            stack.enter_context(_running(folder, "worker", *usual, "--scheduler-file", str(file), *arguments))
        yield file


def address_in(scheduler_file: Path) -> str:
    """Return the address that a scheduler wrote down."""
    return str(json.loads(scheduler_file.read_text())["address"])


def wait_for_files(folder: Path, pattern: str, count: int) -> None:
    """Wait until a folder holds so many files."""
    _wait(lambda: len(list(folder.glob(pattern))) >= count)


def _wait(done: object) -> None:
    assert callable(done)
    deadline = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


@contextlib.contextmanager
def _running(folder: Path, *command: str) -> Iterator[None]:
    with (folder / f"{command[0]}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dask", *command], stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
