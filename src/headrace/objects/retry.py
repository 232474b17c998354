"""When a request is tried again: one deadline for all its tries, with pauses that grow and differ between clients.

The libraries' own retries are off, so nothing multiplies. A fault on the way is waited out; a configuration error is
not: where nothing ever answered under an address, a short probe is all it gets.
"""

import random
import time
from typing import Final

from headrace.objects.faults import Fault, Kind
from headrace.schemas.storage_config import StorageConfig

FIRST_PAUSE: Final = 0.1
"""Seconds before the first new try; doubled for each one after it, and cut by a random share of up to a half."""
LONGEST_PAUSE: Final = 10.0
THROTTLED_PAUSE: Final = 0.3
"""Seconds before the first new try where the server asked for fewer requests."""
PROBE_SECONDS: Final = 5.0
"""How long an address is tried that never answered."""
_AGAIN = (Kind.THROTTLED, Kind.TRANSIENT, Kind.UNREACHED)


class Retrying:
    """The tries of one request.

    Parameters
    ----------
    storage
        Number of new tries and deadline.
    """

    def __init__(self, storage: StorageConfig) -> None:
        self._began = time.monotonic()
        self._seconds = storage.timeout_seconds
        self._left = storage.max_retries
        self._pauses = 0
        self.tries = 1

    @property
    def elapsed(self) -> float:
        """Seconds since the first try."""
        return time.monotonic() - self._began

    def pause_after(self, fault: Fault, *, answered: bool, given_up: bool = False) -> float | None:
        """Return seconds to wait before the next try, or None when there is to be none.

        Parameters
        ----------
        fault
            Of the last try.
        answered
            Whether the address ever answered this process.
        given_up
            Whether another request has waited for its first answer in vain.
        """
        if fault.kind not in _AGAIN or self._left == 0 or (given_up and not answered):
            return None
        first = THROTTLED_PAUSE if fault.kind is Kind.THROTTLED else FIRST_PAUSE
        pause = min(first * 2.0**self._pauses, LONGEST_PAUSE) * random.uniform(0.5, 1.0)
        seconds = self._seconds
        if not answered:
            seconds = min(seconds, PROBE_SECONDS)
        if self.elapsed + pause > seconds:
            return None
        self._left -= 1
        self._pauses += 1
        self.tries += 1
        return pause
