"""Check what a caller gives to the loader, and from where."""

import math
import os
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from headrace.loader.catalog import Index
from headrace.schemas.errors import ConfigError, describe

if TYPE_CHECKING:
    import torch


def opened(index: object) -> Index:
    """Return an opened index.

    Raises
    ------
    ConfigError
        It is none, such as the folder of one.
    """
    if isinstance(index, Index):
        return index
    raise ConfigError(
        describe(
            "index is not opened",
            where="the first argument",
            expected="what headrace.open_index returned",
            got=repr(index)[:200],
            fix='open it first: headrace.open_index("DIR")',
        )
    )


def whole_number(name: str, value: object, *, least: int = 1) -> int:
    """Return a whole number of at least ``least`` that fits 63 bits.

    Raises
    ------
    ConfigError
        It is none.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value < 2**63:
        return int(value)
    raise _not_valid(name, f"a whole number of at least {least}", value)


def is_above_zero(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return 0 < float(value) < math.inf


def seconds(name: str, value: object) -> float | None:
    """Return a number of seconds above 0; None, no limit, stays None.

    Raises
    ------
    ConfigError
        It is neither.
    """
    if value is None:
        return None
    if is_above_zero(value):
        return float(value)
    raise _not_valid(name, "a number of seconds above 0, or None to wait for ever", value)


def yes_or_no(name: str, value: object) -> bool:
    """Return a truth value.

    Raises
    ------
    ConfigError
        It is none.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise _not_valid(name, "True or False", value)


def folder(name: str, value: object) -> str | None:
    """Return a folder's name as text; None stays None.

    Raises
    ------
    ConfigError
        It is no path.
    """
    if value is None:
        return None
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        if isinstance(path, str) and path and "\0" not in path:
            return path
    raise _not_valid(name, "a path", value)


def usable_device(value: object) -> "torch.device":
    """Return a device that this machine has and that tensors can be copied to.

    Raises
    ------
    ConfigError
        There is no such device here.
    """
    import torch  # which a report, that plans and serves nothing, does not wait for

    try:
        if not isinstance(value, str | int | torch.device):
            msg = "neither a name nor a torch.device"
            raise TypeError(msg)
        device = torch.device(value)
        torch.empty(1).to(device).item()
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            describe(
                "device cannot be used",
                where="WindowLoader, device",
                expected=f"cpu{', cuda' if torch.cuda.is_available() else ' (torch sees no GPU here)'}",
                got=f"{value!r}: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
                fix='give device="cpu", or install a PyTorch build and a driver for this device',
            )
        ) from None
    return device


def _not_valid(name: str, expected: str, value: object) -> ConfigError:
    return ConfigError(
        describe(
            f"{name} is not valid",
            where=f"WindowLoader, {name}",
            expected=expected,
            got=repr(value)[:200],
            fix="correct the argument",
        )
    )


def check_process(pid: int) -> None:
    """Raise RuntimeError in a forked child, where the threads of a loader do not exist and reading would hang."""
    if os.getpid() != pid:
        msg = (
            "this WindowLoader was made in another process, and a fork does not copy its threads: use it there, or "
            "make one here. It reads in threads of its own; for torch's DataLoader there is WindowDataset"
        )
        raise RuntimeError(msg)
