"""Compile a function of numbers and arrays to machine code that runs without the interpreter lock."""

from collections.abc import Collection
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
        return numba.njit(function, cache=True, nogil=True, fastmath=lightly, error_model="numpy")
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return numba.njit(function, nogil=True, fastmath=lightly, error_model="numpy")
