"""Compile a function of numbers and arrays to machine code that runs without the interpreter lock."""

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import numba


def compiled(function: Any, *, fastmath: Collection[str] = ()) -> Any:
    """Return the function compiled on its first call; the machine code is kept between runs where that is possible.

    Parameters
    ----------
    function
        Of arrays and numbers that Numba knows.
    fastmath
        LLVM's names of what arithmetic may be taken lightly; nothing unless named.
    """
    lightly = set(fastmath)
    try:
        made = numba.njit(function, cache=True, nogil=True, fastmath=lightly, error_model="numpy")
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return numba.njit(function, nogil=True, fastmath=lightly, error_model="numpy")
    if hasattr(made, "_cache"):
        _do_without(made._cache)  # Numba has no setting for it
    return made


def _do_without(cache: Any) -> None:
    """Let code be compiled anew where kept code cannot be read, and not be kept where there is no space for it.

    A full disk, a quota or a file that a loss of power left cut would otherwise end the first call with an error.
    """
    load, save = cache.load_overload, cache.save_overload

    def load_or_nothing(*place: Any) -> Any:
        try:
            return load(*place)
        except Exception:  # noqa: BLE001 - unpickling a damaged file raises almost anything
            _forget(cache)
            return None

    def save_or_not(*what: Any) -> None:
        try:
            save(*what)
        except OSError:
            _forget(cache)

    cache.load_overload, cache.save_overload = load_or_nothing, save_or_not


def _forget(cache: Any) -> None:
    """Let no list of kept code stand that names what was not written."""
    with suppress(OSError):
        cache.flush()
