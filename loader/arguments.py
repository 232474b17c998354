"""Check what a caller gives to the loader, and from where."""

import os

import numpy as np

from headrace.schemas.errors import ConfigError, describe


def whole_number(name: str, value: object, *, least: int = 1) -> int:
    """Return a whole number of at least ``least`` that fits 63 bits.

    Raises
    ------
    ConfigError
        It is none.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value < 2**63:
        return int(value)
    raise ConfigError(
        describe(
            f"{name} is not valid",
            where=f"WindowLoader, {name}",
            expected=f"a whole number of at least {least}",
            got=repr(value),
            fix="correct the argument",
        )
    )


def check_process(pid: int) -> None:
    """Raise RuntimeError in a forked child, where the threads of a loader do not exist and reading would hang."""
    if os.getpid() != pid:
        msg = (
            "this WindowLoader was made in another process, and a fork does not copy its threads: use it there, or "
            "make one here. It reads in threads of its own, so a torch DataLoader around it needs num_workers=0"
        )
        raise RuntimeError(msg)
