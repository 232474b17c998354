"""Processes that ``torchrun`` started: who this one is, and the group they form.

The environment tells before torch is loaded, so that a command can refuse early what it does not do with several.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from headrace.trainer.ranks import Ranks


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else otherwise


def world_size() -> int:
    """Return the number of processes that were started together; 1 without torchrun."""
    return _number("WORLD_SIZE", 1) if "RANK" in os.environ and "MASTER_ADDR" in os.environ else 1


def rank() -> int:
    """Return the process's number among those that were started together, counted from 0."""
    return _number("RANK", 0) if world_size() > 1 else 0


def is_first() -> bool:
    """Return whether this process writes files and prints: rank 0, or the only one."""
    return rank() == 0


def local_rank() -> int | None:
    """Return the process's number on its host, which is that of its GPU; None without torchrun."""
    return _number("LOCAL_RANK", 0) if world_size() > 1 else None


def processes_here() -> int:
    """Return the number of processes on this host, which share its memory and processors."""
    return _number("LOCAL_WORLD_SIZE", world_size()) if world_size() > 1 else 1


@contextmanager
def joined(device: "torch.device") -> Iterator["Ranks"]:
    """Form the group of processes; where there is one already, or one process only, take it as it is.

    Warnings are heard from rank 0 only. The group is left in order unless an error ends the block: the others may then
    wait in a step that never comes, until torchrun ends them.
    """
    import torch

    from headrace.trainer.ranks import Ranks

    if world_size() == 1 or torch.distributed.is_initialized():
        yield Ranks.current()
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # Two backends: values go around on the CPU, gradients where they are.
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    if not is_first():
        logging.getLogger("headrace").setLevel(logging.ERROR)
    yield Ranks.current()
    torch.distributed.destroy_process_group()
