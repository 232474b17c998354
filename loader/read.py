"""Read each group of a split once, in threads, whoever asks first: this loader or another process of the host."""

import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headrace.loader.filler import RowFiller
from headrace.loader.group_fetch import GroupFetch
from headrace.loader.layout import Layout
from headrace.loader.placement import Placement, place_all
from headrace.loader.read_plan import ReadGroup
from headrace.loader.storage import Rows

_BUSY_SECONDS = 0.003
"""Pause of a reader that finds a group being read by another process."""


class Ledger(Protocol):
    """Which groups the rows hold, agreed on with the other processes that use them."""

    def finished(self, number: int) -> bool:
        """Return whether the rows of a group are there."""

    def claim(self, number: int) -> bool:
        """Take a group; False while another process has it."""

    def release(self, number: int) -> None:
        """Give a group back, finished or not."""

    def finish(self, number: int) -> bool:
        """Say that the rows of a group are there; True when they were the last."""

    @property
    def to_be_sealed(self) -> bool:
        """Whether all rows are there, and may be lost with the power."""

    def seal(self) -> None:
        """Make the rows survive a loss of power."""


class GroupReader:
    """Fill rows from read groups, each at most once.

    Parameters
    ----------
    filler
        Turns a group into rows.
    layout
        Where rows lie.
    groups
        All read groups of the split.
    mended
        Per data set, whether its time axis was mended: any group may then hold any step.
    rows
        Destination.
    executor
        Reader threads.
    ledger
        Of rows that are shared with other processes.
    """

    def __init__(
        self,
        *,
        filler: RowFiller,
        layout: Layout,
        groups: Sequence[ReadGroup],
        mended: Sequence[bool],
        rows: Rows,
        executor: Executor,
        ledger: Ledger | None = None,
    ) -> None:
        self._filler, self._groups, self._rows = filler, groups, rows
        self._executor, self._ledger = executor, ledger
        self._where = place_all(layout)
        self._lock = threading.Lock()
        self._futures: dict[int, Future[None]] = {}
        self._passing: set[Future[None]] = set()
        self._left_over: set[int] = set()
        self._of_slot, self._cuts = _groups_of_slots(groups, layout.num_slots)
        self._steps = np.array([_steps_held(group, mended[group.dataset]) for group in groups]).reshape(-1, 2)
        if rows.x.size or rows.y.size:
            filler.fill_without_arrays(rows, self._where)
        if ledger is not None and ledger.to_be_sealed:  # whoever finished them was killed before it could
            executor.submit(ledger.seal)

    def new_pass(self) -> None:
        """Read again what failed in an earlier pass, or is left under way and fails yet: it may go well now."""
        with self._lock:
            self._futures = {number: read for number, read in self._futures.items() if not _failed(read)}
            self._left_over = {number for number, read in self._futures.items() if not read.done()}

    def groups_of(
        self, slots: NDArray[np.int64], first: NDArray[np.integer[Any]], last: NDArray[np.integer[Any]]
    ) -> list[int]:
        """Return the groups that hold steps [first, last) of slots, in the order of the slots."""
        begin, count = self._cuts[slots], np.diff(self._cuts)[slots]
        line = np.repeat(np.arange(slots.size), count)
        number = self._of_slot[np.arange(line.size) + (begin - np.cumsum(count) + count)[line]]
        low, high = self._steps[number].T
        needed, place = np.unique(number[(low < last[line]) & (high > first[line])], return_index=True)
        in_order: list[int] = needed[np.argsort(place)].tolist()
        return in_order

    def start(self, numbers: Iterable[int]) -> list[Future[None]]:
        """Begin reading those groups that are not read yet, in their order, and return what to wait for.

        A read that failed is tried again by the next pass only: several rounds of this one may wait for it.
        """
        found = []
        with self._lock:
            for number in numbers:
                earlier = self._futures.get(number)
                if earlier is None:
                    self._futures[number] = self._submit(number)
                elif number in self._left_over:
                    self._left_over.discard(number)
                    again: Future[None] = Future()
                    earlier.add_done_callback(partial(self._follow, number, again))
                    self._futures[number] = again
                found.append(self._futures[number])
        return found

    def start_into(self, numbers: Iterable[int], rows: Rows, where: Placement) -> list[Future[None]]:
        """Begin reading groups once more, into other rows."""
        expected = [self._filler.expect(self._groups[n], where) for n in numbers]
        reads = [self._executor.submit(self._filler.fill, group, rows, where) for group in expected]
        for group, read in zip(expected, reads, strict=True):
            read.add_done_callback(partial(self._forget, group))
        with self._lock:
            self._passing = {read for read in self._passing if not read.done()} | set(reads)
        return reads

    def open_for_reads(self) -> bool:
        """Return whether reads can still begin; not after the loader was closed or the interpreter began to end."""
        try:
            self._executor.submit(int)
        except RuntimeError:
            return False
        return True

    def give_up(self) -> None:
        """Fail reads that wait for a bucket, which may be silent for long."""
        self._filler.give_up()

    def idle(self, timeout: float | None) -> bool:
        """Wait until no read is under way; False when some still is after ``timeout`` seconds."""
        with self._lock:
            # wait() would wait for ever for a read that was cancelled before it began
            running = [read for read in (*self._futures.values(), *self._passing) if not read.done()]
        return not wait(running, timeout).not_done

    def _submit(self, number: int) -> Future[None]:
        outcome: Future[None] = Future()
        self._try(number, outcome)
        return outcome

    def _try(self, number: int, outcome: Future[None]) -> None:
        if self._ledger is None:
            group = self._filler.expect(self._groups[number], self._where)
            attempt = self._executor.submit(self._fill, group)
            attempt.add_done_callback(partial(self._forget, group))
        else:  # the rows may be there before it is this group's turn, so nothing is asked for ahead
            attempt = self._executor.submit(self._share, number, self._ledger)
        attempt.add_done_callback(partial(self._settle, number, outcome))

    def _settle(self, number: int, outcome: Future[None], attempt: Future[bool]) -> None:
        """Pass on how an attempt ended; one that found the group taken queues up behind the other groups."""
        if not attempt.cancelled() and attempt.exception() is None and not attempt.result():
            try:
                self._try(number, outcome)
            except RuntimeError:  # the loader was closed
                _cancel(outcome)
        elif attempt.cancelled():
            _cancel(outcome)
        elif (error := attempt.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    def _follow(self, number: int, outcome: Future[None], earlier: Future[None]) -> None:
        """Take over the result of an earlier read, or read again if it failed."""
        if not earlier.cancelled() and earlier.exception() is None:
            outcome.set_result(None)
            return
        try:
            self._try(number, outcome)
        except RuntimeError:
            _cancel(outcome)

    def _fill(self, group: GroupFetch) -> bool:
        self._filler.fill(group, self._rows, self._where)
        return True

    def _forget(self, group: GroupFetch, read: Future[Any]) -> None:
        """Let nothing be asked for ahead for a read that was cancelled before it began."""
        if read.cancelled():
            self._filler.forget(group)

    def _share(self, number: int, ledger: Ledger) -> bool:
        """Make the rows of a group be there; False while another process is about to."""
        group = self._groups[number]
        if ledger.finished(number):
            self._filler.verify(group, self._where)
            return True
        if not ledger.claim(number):
            time.sleep(_BUSY_SECONDS)
            return False
        try:
            if ledger.finished(number):
                self._filler.verify(group, self._where)
                return True
            self._fill(self._filler.expect(group, self._where))
            last = ledger.finish(number)
        finally:
            ledger.release(number)
        if last:
            with contextlib.suppress(RuntimeError):  # the loader was closed: the next one to open the rows seals them
                self._executor.submit(ledger.seal)
        return True


def _groups_of_slots(groups: Sequence[ReadGroup], num_slots: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the groups of every slot, ascending, slot after slot, and where those of each begin: int64 [slots + 1]."""
    sizes = [group.slots.size for group in groups]
    slot = np.concatenate([np.zeros(0, np.int64), *(group.slots for group in groups)])
    cuts = np.append(0, np.cumsum(np.bincount(slot, minlength=num_slots)))
    return np.repeat(np.arange(len(groups)), sizes)[np.argsort(slot, kind="stable")], cuts


def _steps_held(group: ReadGroup, mended: bool) -> tuple[int, int]:
    """Return between which steps those of a group lie."""
    return (0, np.iinfo(np.int64).max) if mended else (group.step_start, group.step_stop)


def _failed(read: Future[None]) -> bool:
    return read.done() and not read.cancelled() and read.exception() is not None


def _cancel(read: Future[None]) -> None:
    read.cancel()
    read.set_running_or_notify_cancel()
