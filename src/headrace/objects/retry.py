"""When a request is tried again: one deadline for all its tries, with pauses that grow and differ between clients.

The libraries' own retries are off, so nothing multiplies. A fault on the way is waited out; a configuration error is
not: where nothing ever answered under an address, a short probe is all it gets.
"""

import random
import time
from typing import Final

from headrace.objects.contact import first_seconds
from headrace.objects.faults import Fault, Kind
from headrace.schemas.storage_config import StorageConfig

FIRST_PAUSE: Final = 0.1
"""Seconds before the first new try; doubled for each one after it, and cut by a random share of up to a half."""
LONGEST_PAUSE: Final = 10.0
THROTTLED_PAUSE: Final = 0.3
"""Seconds before the first new try where the server asked for fewer requests."""
PROBE_SECONDS: Final = 5.0
"""How long an address is tried where no connection can be made."""
_AGAIN = (Kind.THROTTLED, Kind.TRANSIENT, Kind.UNREACHED)


class Retrying:
    """The tries of one request.

    Parameters
    ----------
    storage
        Number of new tries and deadline.
    began
        When the first try began, of :func:`time.monotonic`; None: now.
    """

    def __init__(self, storage: StorageConfig, began: float | None = None) -> None:
        self._began = time.monotonic() if began is None else began
        self._seconds, self._first_seconds = storage.timeout_seconds, first_seconds(storage)
        self._left = storage.max_retries
        self._pauses = 0
        self.tries = 1

    @property
    def elapsed(self) -> float:
        """Seconds since the first try."""
        return time.monotonic() - self._began

    def pause_after(self, fault: Fault, *, answered: bool) -> float | None:
        """Return seconds to wait before the next try, or None when there is to be none.

        Parameters
        ----------
        fault
            Of the last try.
        answered
            Whether the address ever answered this process.
        """
        if fault.kind not in _AGAIN or self._left == 0:
            return None
        first = THROTTLED_PAUSE if fault.kind is Kind.THROTTLED else FIRST_PAUSE
        pause = min(first * 2.0**self._pauses, LONGEST_PAUSE) * random.uniform(0.5, 1.0)
        seconds = self._seconds
        if not answered:
            seconds = min(seconds, self._first_seconds)
            seconds = min(seconds, PROBE_SECONDS) if fault.kind is Kind.UNREACHED else seconds
        if self.elapsed + pause > seconds:
            return None
        self._pauses += 1
        self.begin_another()
        return pause

    def begin_another(self) -> bool:
        """Count one more try, if there may be one."""
        if self._left == 0:
            return False
        self._left -= 1
        self.tries += 1
        return True
