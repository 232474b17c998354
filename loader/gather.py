"""Batches by number: where their windows lie in the rounds' pools, and the copy that makes batches of them.

Small calls cost more than their work, so places are worked out for many batches in one go, and a copy makes a few
consecutive batches, a job, at once. A :class:`Gatherer` holds no thread; several threads may call it at once.
"""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.loader.batch import Batch
from headrace.loader.buffers import BufferPool
from headrace.loader.layout import Layout
from headrace.loader.partition import BatchCuts
from headrace.loader.permutation import Order
from headrace.loader.pool import PieceFinder, RoundWindows
from headrace.loader.rounds import RoundQueue
from headrace.loader.schedule import EpochPlan
from headrace.schemas.windows import WindowSpec

_LOCATED_TOGETHER = 16_384
"""Windows whose places are worked out in one go."""
_JOBS_NBYTES = 72 * 2**20
"""Bytes that the jobs of all threads aim at; a job has one batch at least."""
_MOST_TOGETHER = 8
"""Batches of a job at most: more would make the first one late for nothing."""


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
class Places:
    """Where the windows of the batches of one job are, one batch after the other.

    Parameters
    ----------
    sizes
        Windows of each batch.
    parts
        (round, windows) in order: how many windows come from each round.
    x_row, y_row
        int64 [windows], first pool row of the inputs and of the targets.
    slot
        int64 [windows].
    dataset, basin, start
        int32 [windows].
    """

    sizes: list[int]
    parts: list[tuple[int, int]]
    x_row: torch.Tensor
    y_row: torch.Tensor
    slot: torch.Tensor
    dataset: torch.Tensor
    basin: torch.Tensor
    start: torch.Tensor


class Gatherer:
    """Make the batches of one rank in one epoch.

    Parameters
    ----------
    plan, cuts, rank
        Order, batch cuts and whose slices.
    rounds
        Rounds being prepared.
    shape, buffers
        What a batch looks like and where its memory comes from.
    together
        Batches of a job.
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
        together: int = 1,
    ) -> None:
        self._plan, self._cuts, self._rank, self._rounds = plan, cuts, rank, rounds
        self._shape, self._buffers, self._together = shape, buffers, together
        self._lock = threading.Lock()
        self._recent: dict[int, tuple[RoundWindows, PieceFinder, Order | None]] = {}
        for number in rounds.numbers:
            rounds.use(number, self._users(number))
            rounds.done(number)

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return -(-len(self._cuts) // self._together)

    def locate(self, jobs: range) -> Iterator[Places]:
        """Yield the places of jobs in turn, worked out for about :data:`_LOCATED_TOGETHER` windows at a time."""
        step = max(_LOCATED_TOGETHER // (self._cuts.batch_size * self._together), 1)
        for first in range(0, len(jobs), step):
            yield from self._located([self._slices_of(job) for job in jobs[first : first + step]])

    def gather(self, places: Places) -> Sequence[Batch]:
        """Wait for the rounds of a job and copy its windows; the batches share memory, and no element of it."""
        window, size = self._shape.window, places.start.shape[0]
        x = self._buffers.take((size, window.length, self._shape.num_x))
        y = self._buffers.take((size, window.target_length, self._shape.num_y))
        x_flat, y_flat, begin = x.flatten(1), y.flatten(1), 0
        for number, count in places.parts:
            if count:
                mine, pool = slice(begin, begin + count), self._rounds.get(number)
                pool.gather(places.x_row[mine], places.y_row[mine], x_flat[mine], y_flat[mine])
            self._rounds.done(number)
            begin += count
        static = torch.index_select(self._shape.statics, 0, places.slot)
        whole = (x, static, y, places.dataset, places.basin, places.start)
        names = ("x", "static", "y", "dataset", "basin", "start")
        if len(places.sizes) == 1:
            return [Batch(**dict(zip(names, whole, strict=True)))]
        cut = zip(*(torch.split(column, places.sizes) for column in whole), strict=True)
        return [Batch(**dict(zip(names, columns, strict=True))) for columns in cut]

    def _slices_of(self, job: int) -> list[tuple[int, int]]:
        batches = range(job * self._together, min((job + 1) * self._together, len(self._cuts)))
        return [self._cuts.slice_of(number, self._rank) for number in batches]

    def _users(self, number: int) -> int:
        """Return how many jobs reach into a round; between its batches a job may reach over windows of other ranks."""
        begin, end = self._plan.window_cuts[number : number + 2]
        jobs = range(self.num_jobs)
        first = bisect_right(jobs, begin, key=lambda job: self._slices_of(job)[-1][1])
        return max(bisect_left(jobs, end, key=lambda job: self._slices_of(job)[0][0]) - first, 0)

    def _located(self, jobs: Sequence[list[tuple[int, int]]]) -> Iterator[Places]:
        """Yield the places of several jobs, one lookup per round for all of them."""
        cuts = self._plan.window_cuts
        bounds = np.array([batch for job in jobs for batch in job], dtype=np.int64)
        sizes = bounds[:, 1] - bounds[:, 0]
        done = np.append(0, np.cumsum(sizes))
        position = np.repeat(bounds[:, 0] - done[:-1], sizes) + np.arange(done[-1])
        row, slot = np.empty(position.size, np.int64), np.empty(position.size, np.int64)
        start = np.empty(position.size, np.int32)
        reach = [_rounds_between(cuts, job[0][0], job[-1][1]) for job in jobs]
        edges = np.searchsorted(position, cuts)
        for number in range(reach[0].start, reach[-1].stop):
            mine = slice(edges[number], edges[number + 1])
            if mine.start < mine.stop:
                windows, finder, order = self._round(number)
                row[mine], slot[mine], start[mine] = windows.locate(position[mine] - cuts[number], order, finder)
        layout = self._shape.layout
        columns = (row, row + self._shape.window.warmup_length, slot, layout.dataset[slot].astype(np.int32),
                   layout.basin[slot], start)  # fmt: skip
        tensors = [torch.from_numpy(column) for column in columns]
        batch = 0
        for job, rounds in zip(jobs, reach, strict=True):
            begin, end = done[batch], done[batch + len(job)]
            parts = np.diff(np.clip(edges[rounds.start : rounds.stop + 1], begin, end)).tolist()
            x_row, y_row, of_slot, dataset, basin, begun = (column[begin:end] for column in tensors)
            yield Places(
                sizes=sizes[batch : batch + len(job)].tolist(), parts=list(zip(rounds, parts, strict=True)),
                x_row=x_row, y_row=y_row, slot=of_slot, dataset=dataset, basin=basin, start=begun,
            )  # fmt: skip
            batch += len(job)

    def _round(self, number: int) -> tuple[RoundWindows, PieceFinder, Order | None]:
        """Return the windows of a round and their order; the latest rounds are remembered."""
        with self._lock:
            if number not in self._recent:
                windows, order = self._rounds.windows(number), self._plan.order_of(number)
                kept = {k: v for k, v in self._recent.items() if k >= number - 1}
                self._recent = kept | {number: (windows, PieceFinder(windows.done), order)}
            return self._recent[number]


def batches_together(shape: BatchShape, batch_size: int, num_jobs: int) -> int:
    """Return how many batches a job should have when ``num_jobs`` are under way or waiting to be taken."""
    window = shape.window
    batch_nbytes = 4 * batch_size * (window.length * shape.num_x + window.target_length * shape.num_y)
    return min(max(_JOBS_NBYTES // (max(num_jobs, 1) * max(batch_nbytes, 1)), 1), _MOST_TOGETHER)


def _rounds_between(cuts: NDArray[np.int64], begin: int, end: int) -> range:
    """Return the rounds that positions [begin, end) reach into; none where it is empty and lies on an edge."""
    first = int(np.searchsorted(cuts, begin, side="right")) - 1
    return range(first, int(np.searchsorted(cuts, end, side="left")))
