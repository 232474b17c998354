"""``headrace train`` in processes of their own: killed, interrupted, several together, one after the other.

All are forks of one process that has imported everything and started nothing. Argument 1 holds the jobs as JSON, in
their order; argument 2 is a folder that takes ``<job>.<rank>.json`` with exit code, standard output and error. A job
has ``name``, ``arguments``, and perhaps ``ranks`` (1), ``port``, and ``then``: what befalls the process of ``rank`` (0)
after so many ``batches`` of training and validation: ``kill``, ``interrupt`` or ``fail``; or ``starve``: it is
interrupted when it waits for a batch that never comes, after so many batches of training, or of validation if there
are no more.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import headrace.commands.train_runs
from command_line import Outcome, run_headrace
from forked import forked
from headrace.loader import Batch, WindowLoader
from headrace.trainer import interrupt
from headrace.trainer.loss_meter import LossMeter

IMPORTED = headrace.commands.train_runs
# Making an optimiser imports much of torch: once, here, instead of in every process.
torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])


def starve(left: int) -> None:
    """Let no batch come after so many, and send Ctrl-C then."""
    real: Callable[[WindowLoader], Iterator[Batch]] = WindowLoader.__iter__

    def batches(self: WindowLoader) -> Iterator[Batch]:
        nonlocal left
        coming = real(self)
        for batch in coming:
            yield batch
            left -= 1
            if left <= 0:
                break
        else:
            return
        os.kill(os.getpid(), signal.SIGINT)
        while self._stream is not None:
            time.sleep(0.001)
        raise RuntimeError("this iteration is over")

    mock.patch.object(WindowLoader, "__iter__", batches).start()
    mock.patch.object(interrupt, "_PATIENCE_SECONDS", 0.1).start()


def befall(then: dict[str, Any]) -> None:
    """Let something happen to this process when so many batches are added up."""
    left = int(then["batches"])
    if then["what"] == "starve":
        starve(left)
        return
    real: Callable[..., None] = LossMeter.add

    def add(self: LossMeter, *arguments: Any) -> None:
        nonlocal left
        real(self, *arguments)
        left -= 1
        if left:
            return
        if then["what"] == "fail":
            raise OSError("the disk is gone")
        os.kill(os.getpid(), signal.SIGKILL if then["what"] == "kill" else signal.SIGINT)

    mock.patch.object(LossMeter, "add", add).start()


def run(job: dict[str, Any], rank: int, out: Path) -> None:
    """Be one process of a job; pictures are left out."""
    mock.patch("headrace.commands.run_training.plot_loss").start()
    torch.set_num_threads(1)
    ranks = int(job.get("ranks", 1))
    if ranks > 1:
        os.environ |= {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(job["port"]),
        }  # fmt: skip
    then = job.get("then", {})
    if then and then.get("rank", 0) == rank:
        befall(then)
    try:
        outcome = run_headrace("train", *job["arguments"])
    except OSError as error:  # what befell it; the command line shows a traceback and ends with 1
        outcome = Outcome(1, "", str(error))
    text = json.dumps({"code": outcome.code, "out": outcome.out, "err": outcome.err})
    (out / f"{job['name']}.{rank}.json").write_text(text, encoding="utf-8")


def fork(job: dict[str, Any], rank: int, out: Path) -> int:
    """Start a process of a job; return its id."""
    return forked(lambda: run(job, rank, out))


if __name__ == "__main__":
    for one in json.loads(sys.argv[1]):
        started = [fork(one, rank, Path(sys.argv[2])) for rank in range(int(one.get("ranks", 1)))]
        ended = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in started]
        killed = one.get("then", {}).get("what") == "kill"
        if any(code != (-signal.SIGKILL if killed else 0) for code in ended):
            sys.exit(f"the processes of {one['name']} ended with {ended}")
