"""Compile a function of numbers and arrays to machine code that runs without the interpreter lock."""

import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NoReturn

import numba
from numba.core import event

from headrace.schemas.errors import ConfigError, describe


class _Compilations(event.Listener):
    """Count how often Numba began and ended to compile, or to load what it kept."""

    def __init__(self) -> None:
        self._lock, self.begun, self.ended = threading.Lock(), 0, 0

    def on_start(self, _event: object) -> None:
        with self._lock:
            self.begun += 1

    def on_end(self, _event: object) -> None:
        with self._lock:
            self.ended += 1


_compilations = _Compilations()
event.register("numba:compiler_lock", _compilations)  # type: ignore[no-untyped-call]


def compilations() -> tuple[int, int]:
    """Return how often any thread of this process began to compile, and how often one ended; unequal while one does."""
    return _compilations.begun, _compilations.ended


def compiled(function: Any, *, fastmath: Collection[str] = ()) -> Any:
    """Return the function compiled on its first call; the machine code is kept between runs where that is possible.

    Parameters
    ----------
    function
        Of arrays and numbers that Numba knows.
    fastmath
        LLVM's names of what arithmetic may be taken lightly; nothing unless named.

    Raises
    ------
    ConfigError
        When it is called: Numba is told not to compile.
    """
    if _forbidden():
        return _refuse
    lightly = set(fastmath)
    try:
        made = numba.njit(function, cache=True, nogil=True, fastmath=lightly, error_model="numpy")
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return numba.njit(function, nogil=True, fastmath=lightly, error_model="numpy")
    if hasattr(made, "_cache"):
        _do_without(made._cache)  # Numba has no setting for it
        _outdate_with_called(made)
    return made


def _forbidden() -> int:
    found: int = numba.config.DISABLE_JIT  # type: ignore[attr-defined]  # set while the module is imported
    return found


def _refuse(*_: object) -> NoReturn:
    """Refuse to run as plain Python: some of the code is machine code whatever one wants, and the rest would crawl."""
    raise ConfigError(
        describe(
            "Numba is told not to compile",
            where="NUMBA_DISABLE_JIT in the environment, or disable_jit in .numba_config.yaml",
            expected="0, or nothing",
            got=str(_forbidden()),
            fix="unset NUMBA_DISABLE_JIT for this program: Headrace reads and scales with compiled code",
        )
    )


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


def _outdate_with_called(made: Any) -> None:
    """Let kept code be out of date also where a compiled function of another file, which became part of it, is."""
    function, file = made.py_func, getattr(made._cache, "_cache_file", None)
    if file is None:
        return
    called = (function.__globals__.get(name) for name in sorted(set(function.__code__.co_names)))
    files = (getattr(getattr(other, "_cache", None), "_cache_file", None) for other in called)
    file._source_stamp = (file._source_stamp, *(other._source_stamp for other in files if other is not None))


def _forget(cache: Any) -> None:
    """Let no list of kept code stand that names what was not written."""
    with suppress(OSError):
        cache.flush()
