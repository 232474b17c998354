"""Bring the rounds of an epoch into memory, some ahead of the one being served.

A resident split has one pool for good, filled as read groups arrive; other splits take turns in buffers, see
``buffered_rounds``.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from headrace.loader.buffered_rounds import wait_for
from headrace.loader.layout import Layout
from headrace.loader.pool import Pool, RoundWindows
from headrace.loader.read import GroupReader
from headrace.loader.round_windows import windows_of_round
from headrace.loader.schedule import EpochPlan
from headrace.loader.storage import Rows
from headrace.loader.tiles import Tiles
from headrace.schemas.windows import WindowSpec


class ResidentRounds:
    """Rounds of a split that stays in memory: one pool over all rows.

    Parameters
    ----------
    tiles, layout, rows, reader, window
        What is served, where its rows lie, and who fills them.
    num_ahead
        Rounds whose rows are read while one is waited for.
    """

    def __init__(
        self, tiles: Tiles, layout: Layout, rows: Rows, reader: GroupReader, window: WindowSpec, *, num_ahead: int
    ) -> None:
        self._tiles, self._layout, self._reader, self._num_ahead = tiles, layout, reader, num_ahead
        self._pool = Pool(rows.x, rows.y, window)
        self._stop = 0

    def open(self, numbers: range) -> None:
        """Begin a pass over some rounds: what an earlier one failed to read is read again. The pool stays."""
        self._stop = numbers.stop
        self._reader.new_pass()

    def windows(self, plan: EpochPlan, number: int) -> RoundWindows:
        """Return where the windows of a round lie in the pool; reads nothing."""
        tiles = plan.tiles_of(number)
        shift = self._layout.base[:-1] - self._layout.first
        return windows_of_round(self._tiles, plan, number, shift[self._tiles.slot[tiles]])

    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Wait until the rows of a round are decoded; those of the next ones are read meanwhile."""
        reads = self._start(plan, number)
        for later in range(number + 1, min(number + 1 + self._num_ahead, self._stop)):
            self._start(plan, later)
        wait_for(reads, stop)
        return self._pool

    def _start(self, plan: EpochPlan, number: int) -> list[Future[None]]:
        chosen = plan.tiles_of(number)
        tiles = self._tiles
        return self._reader.start(
            self._reader.groups_of(tiles.slot[chosen], tiles.step_start[chosen], tiles.step_stop[chosen])
        )

    def release(self, pool: Pool) -> None:
        """Nothing to give back: the pool stays."""

    def close(self) -> None:
        """Nothing to wake."""


class Rounds(Protocol):
    """Where rounds come from, on the host or on a device."""

    def open(self, numbers: range) -> None:
        """Begin a pass over some rounds."""

    def windows(self, plan: EpochPlan, number: int) -> RoundWindows:
        """Return where the windows of a round lie in its pool."""

    def prepare(self, plan: EpochPlan, number: int, stop: Future[None]) -> Pool:
        """Bring a round into a pool."""

    def release(self, pool: Pool) -> None:
        """Take a round's pool back."""

    def close(self) -> None:
        """Wake a waiting :meth:`prepare`."""


class RoundQueue:
    """Prepare rounds in order on one thread and count who still gathers from each.

    Parameters
    ----------
    source
        Where rounds come from.
    plan
        The epoch.
    numbers
        Rounds needed.
    """

    def __init__(self, source: Rounds, plan: EpochPlan, numbers: range) -> None:
        self._source, self._plan = source, plan
        source.open(numbers)
        self._lock = threading.Lock()
        self.numbers = numbers
        self._users = dict.fromkeys(numbers, 1)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="headrace-round")
        self._stop: Future[None] = Future()
        self._pools: dict[int, Future[Pool]] = {
            number: self._executor.submit(source.prepare, plan, number, self._stop) for number in numbers
        }

    def windows(self, number: int) -> RoundWindows:
        """Return where the windows of a round lie in its pool, without waiting for it."""
        return self._source.windows(self._plan, number)

    def use(self, number: int, times: int) -> None:
        """Announce further gathers from a round."""
        with self._lock:
            self._users[number] += times

    def get(self, number: int) -> Pool:
        """Wait for a round's pool; raises what reading it raised."""
        return self._pools[number].result()

    def done(self, number: int) -> None:
        """Take back one announcement; the last one frees the round's buffer."""
        with self._lock:
            self._users[number] -= 1
            last = self._users[number] == 0
        if last:  # a round that this rank takes nothing from may still be on its way
            self._pools[number].add_done_callback(self._release)

    def _release(self, pool: Future[Pool]) -> None:
        if not pool.cancelled() and pool.exception() is None:
            self._source.release(pool.result())

    def close(self) -> None:
        """Stop preparing and join the thread; a second call does nothing, since the source may serve another epoch."""
        with self._lock:
            first_call = not self._stop.done()
            if first_call:
                self._stop.set_result(None)
        if first_call:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._source.close()
        self._executor.shutdown(wait=True)
