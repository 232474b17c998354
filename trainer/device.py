"""Which device a run computes on: ``auto`` takes a GPU where there is one."""

import torch

from headrace.schemas.errors import ConfigError, describe


def choose_device(name: str) -> torch.device:
    """Return the device that a name means here.

    Parameters
    ----------
    name
        ``auto``, ``cpu``, ``cuda`` or any other name torch knows, such as ``cuda:1``.

    Raises
    ------
    ConfigError
        torch knows no such device, or this machine has none.
    """
    available = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if available else "cpu")
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
    return device
