"""Run commands one after another in this process, with every logger at its most talkative and every message kept.

Arguments: a folder for what is kept, and a file with a JSON list of command lines. Left behind are `debug.log`,
`dask.bin` (what Dask sent or pickled here), `codes.json` (their exit codes) and what the commands said.
"""

import json
import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import distributed.protocol
import distributed.protocol.pickle

from headrace.cli import main


def keep_what_dask_sends(file: Path) -> None:
    """Write everything that is pickled for, or sent to, other processes to a file as well."""
    lock = threading.Lock()

    def kept(real: Callable[..., Any]) -> Callable[..., Any]:
        def dumps(*arguments: Any, **options: Any) -> Any:
            frames = real(*arguments, **options)
            with lock, file.open("ab") as out:
                for frame in frames if isinstance(frames, list) else [frames]:
                    out.write(bytes(frame))
            return frames

        return dumps

    for module in (distributed.protocol, distributed.protocol.pickle):
        mock.patch.object(module, "dumps", kept(module.dumps)).start()


def run(arguments: list[str]) -> object:
    """Run one command and return its exit code."""
    try:
        with mock.patch.object(sys, "argv", arguments):
            main()
    except SystemExit as end:
        return end.code


if __name__ == "__main__":
    folder, commands = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    logging.basicConfig(filename=folder / "debug.log", level=logging.DEBUG, force=True)
    keep_what_dask_sends(folder / "dask.bin")
    with mock.patch("headrace.trainer.plots._save", lambda _, out: out):  # a picture holds no key, and takes long
        codes = [run(["headrace", "--verbose", *command]) for command in commands]
    (folder / "codes.json").write_text(json.dumps(codes), encoding="utf-8")
