"""Which device a run computes on: ``auto`` takes a GPU where there is one."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headrace.schemas.errors import ConfigError, HeadraceError, describe
from headrace.trainer.launch import local_rank, processes_here


class DeviceMemoryError(HeadraceError):
    """The GPU has too little memory for the model and its batches."""


def choose_device(name: str) -> torch.device:
    """Return the device that a name means here; of processes that torchrun started each has a GPU of its own.

    Parameters
    ----------
    name
        ``auto``, ``cpu``, ``cuda`` or any other name torch knows, such as ``cuda:1``.

    Raises
    ------
    ConfigError
        torch knows no such device, or this machine has none, or fewer than processes; or all processes would share it.
    """
    available = torch.cuda.is_available()
    if name == "auto":
        return _own_gpu() if available else torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(
            describe(
                "no such device",
                where="train.device",
                expected="auto, cpu or cuda",
                got=repr(name),
                fix="correct the name",
            )
        ) from error
    if device.type == "cuda" and not available:
        raise ConfigError(
            describe(
                "there is no GPU to compute on",
                where="train.device",
                expected="a GPU that torch can use",
                got=f"none (torch {torch.__version__})",
                fix="use --device cpu or auto, or install torch with CUDA",
            )
        )
    named_alone = device == torch.device("cuda")
    if device.type == "cuda" and not named_alone and processes_here() > 1:
        raise ConfigError(
            describe(
                "several processes would compute on one GPU",
                where="train.device",
                expected="cuda or auto, which give each process a GPU of its own",
                got=name,
                fix="use --device cuda; CUDA_VISIBLE_DEVICES chooses among the GPUs of a host",
            )
        )
    return _own_gpu() if named_alone else device


@contextmanager
def memory_named(task: str) -> Iterator[None]:
    """Turn torch's complaint about a full GPU into one that says what to change.

    Raises
    ------
    DeviceMemoryError
        The block ran out of the GPU's memory; ``task`` says what it did.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceMemoryError(
            describe(
                "the GPU has no memory left",
                where=task,
                expected="room for the model, a batch, and what is decoded ahead",
                got=str(error).splitlines()[0][:200],
                fix="use a smaller --batch-size or --hidden-size, --amp, or less for decoded rows, such as "
                "--set loader.device_memory_budget=1GiB; to change settings begin a new run",
            )
        ) from error


def _own_gpu() -> torch.device:
    """Return the GPU of this process; without torchrun torch's present one."""
    number = local_rank()
    if number is None:
        return torch.device("cuda")
    if number >= torch.cuda.device_count():
        raise ConfigError(
            describe(
                "there are more processes on this host than GPUs",
                where=f"process {number} of this host, counted from 0",
                expected="a GPU for each process",
                got=f"{torch.cuda.device_count()} GPUs",
                fix="give torchrun a smaller --nproc-per-node, or compute with --device cpu",
            )
        )
    return torch.device("cuda", number)
