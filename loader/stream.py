"""One epoch as an iterator of batches: rounds read ahead, batches gathered in threads, handed out in order.

Errors in any thread surface here, in the consumer, with their cause. Closing joins every thread.
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch

from headrace.loader.batch import Batch
from headrace.loader.buffers import BufferPool
from headrace.loader.layout import Layout
from headrace.loader.partition import BatchCuts
from headrace.loader.permutation import Permutation
from headrace.loader.pool import RoundWindows
from headrace.loader.rounds import RoundQueue
from headrace.loader.schedule import EpochPlan
from headrace.schemas.errors import ReadError, describe
from headrace.schemas.windows import WindowSpec

_ORDERED_TOGETHER = 16_384
"""Windows whose places are worked out in one go; small calls would cost more than the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchShape:
    """What every batch of a loader has in common.

    Parameters
    ----------
    window
        Shape in steps.
    num_x, num_y
        Columns of x (masks included) and y.
    statics
        float32 [slots, Vs].
    layout
        Slots, for data set and basin numbers.
    """

    window: WindowSpec
    num_x: int
    num_y: int
    statics: torch.Tensor
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where the windows of a stretch of the epoch are: pool row, slot, start, data set and basin, one entry each."""

    row: torch.Tensor
    slot: torch.Tensor
    start: torch.Tensor
    dataset: torch.Tensor
    basin: torch.Tensor


class EpochStream:
    """Iterate over the batches of one rank in one epoch.

    Parameters
    ----------
    plan, cuts, rank
        Order, batch cuts and whose slices.
    rounds
        Rounds being prepared.
    shape, buffers
        What a batch looks like and where its memory comes from.
    num_threads
        Gather threads.
    timeout
        Seconds to wait for a batch before giving up; None waits for ever.
    """

    def __init__(
        self,
        *,
        plan: EpochPlan,
        cuts: BatchCuts,
        rank: int,
        rounds: RoundQueue,
        shape: BatchShape,
        buffers: BufferPool,
        num_threads: int,
        timeout: float | None,
    ) -> None:
        self._plan, self._cuts, self._rank, self._rounds = plan, cuts, rank, rounds
        self._shape, self._buffers, self._timeout = shape, buffers, timeout
        self._depth = num_threads + 2
        # A thread takes its number of intra-op threads when it first asks; the gatherers' one must not reach this one.
        torch.get_num_threads()
        self._gatherers = ThreadPoolExecutor(
            num_threads, thread_name_prefix="headrace-gather", initializer=torch.set_num_threads, initargs=(1,)
        )
        self._lock = threading.Lock()
        self._recent: dict[int, tuple[RoundWindows, Permutation | None]] = {}
        self._sealed = int(np.searchsorted(plan.window_cuts, cuts.first, side="right")) - 1

    def __iter__(self) -> Iterator[tuple[Batch, int]]:
        """Yield batches and the position of the epoch after each global batch."""
        jobs = self._jobs()
        pending: deque[tuple[Future[Batch], int]] = deque()
        for _ in range(self._depth):
            self._submit(jobs, pending)
        while pending:
            future, position = pending.popleft()
            try:
                batch = future.result(self._timeout)
            except FutureTimeoutError as error:
                if future.done():
                    raise
                raise ReadError(
                    describe(
                        "no batch in time",
                        where="WindowLoader",
                        expected=f"a batch within {self._timeout} s",
                        got="none",
                        fix="raise timeout, or look at the storage",
                    )
                ) from error
            self._submit(jobs, pending)
            yield batch, position

    def close(self) -> None:
        """Stop and join all threads."""
        self._gatherers.shutdown(wait=False, cancel_futures=True)
        self._rounds.close()
        self._gatherers.shutdown(wait=True)

    def _submit(
        self, jobs: Iterator[tuple[Callable[[], Batch], int]], pending: deque[tuple[Future[Batch], int]]
    ) -> None:
        job = next(jobs, None)
        if job is not None:
            pending.append((self._gatherers.submit(job[0]), job[1]))

    def _jobs(self) -> Iterator[tuple[Callable[[], Batch], int]]:
        """Cut the epoch into gather jobs; places are worked out for several batches at once, one stretch ahead."""
        together = max(_ORDERED_TOGETHER // self._cuts.batch_size, 1)
        total = len(self._cuts)
        stretches = [range(first, min(first + together, total)) for first in range(0, total, together)]
        submitted = map(self._submit_places, stretches)
        ahead = next(submitted)
        for numbers in stretches:
            places, ahead = ahead, next(submitted, ahead)
            begin = 0
            for number in numbers:
                start, stop = self._cuts.slice_of(number, self._rank)
                parts = self._parts(start, stop)
                for in_round, _, _ in parts:
                    self._rounds.use(in_round)
                end = self._cuts.bounds(number)[1]
                self._seal(end)
                yield self._job(places, begin, parts), end
                begin += stop - start

    def _submit_places(self, numbers: range) -> Future[_Places]:
        return self._gatherers.submit(self._locate, [self._cuts.slice_of(number, self._rank) for number in numbers])

    def _job(self, places: Future[_Places], begin: int, parts: list[tuple[int, int, int]]) -> Callable[[], Batch]:
        return lambda: self._gather(places.result(), begin, parts)

    def _seal(self, position: int) -> None:
        """Let go of rounds that end at or before a position: nothing later is gathered from them."""
        while self._sealed < self._plan.num_rounds and self._plan.window_cuts[self._sealed + 1] <= position:
            self._rounds.done(self._sealed)
            self._sealed += 1

    def _parts(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Split positions at round edges: (round, start, stop)."""
        cuts = self._plan.window_cuts
        first = int(np.searchsorted(cuts, start, side="right")) - 1
        parts = []
        while start < stop:
            end = min(stop, int(cuts[first + 1]))
            parts.append((first, start, end))
            start, first = end, first + 1
        return parts

    def _locate(self, slices: list[tuple[int, int]]) -> _Places:
        """Work out pool row, slot and start for the positions of several batches."""
        parts = [part for start, stop in slices for part in self._parts(start, stop)]
        size = sum(stop - start for _, start, stop in parts)
        row, slot, start_step = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int32)
        end = 0
        for number, group in itertools.groupby(parts, key=itemgetter(0)):
            windows, order = self._round(number)
            positions = np.concatenate([np.arange(start, stop) for _, start, stop in group])
            begin, end = end, end + positions.size
            found = windows.locate(positions - self._plan.window_cuts[number], order)
            row[begin:end], slot[begin:end], start_step[begin:end] = found
        layout = self._shape.layout
        return _Places(
            row=torch.from_numpy(row),
            slot=torch.from_numpy(slot),
            start=torch.from_numpy(start_step),
            dataset=torch.from_numpy(layout.dataset[slot].astype(np.int32)),
            basin=torch.from_numpy(layout.basin[slot]),
        )

    def _round(self, number: int) -> tuple[RoundWindows, Permutation | None]:
        """Return the windows of a round and their order; the two latest rounds are remembered."""
        with self._lock:
            if number not in self._recent:
                windows = self._rounds.windows(number)
                key = self._plan.key_of(number)
                order = Permutation(key, int(windows.done[-1])) if self._plan.shuffle else None
                self._recent = {k: v for k, v in self._recent.items() if k >= number - 1} | {number: (windows, order)}
            return self._recent[number]

    def _gather(self, places: _Places, begin: int, parts: list[tuple[int, int, int]]) -> Batch:
        window = self._shape.window
        size = sum(stop - start for _, start, stop in parts)
        x = self._buffers.take((size, window.length, self._shape.num_x))
        y = self._buffers.take((size, window.target_length, self._shape.num_y))
        filled = 0
        for number, start, stop in parts:
            end = filled + stop - start
            rows = places.row[begin + filled : begin + end]
            self._rounds.get(number).gather(rows, x[filled:end], y[filled:end])
            self._rounds.done(number)
            filled = end
        mine = slice(begin, begin + size)
        return Batch(
            x=x,
            y=y,
            static=self._shape.statics[places.slot[mine]],
            dataset=places.dataset[mine],
            basin=places.basin[mine],
            start=places.start[mine],
        )
