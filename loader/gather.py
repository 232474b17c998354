"""Batches by number: where their windows lie in the rounds' pools, and the copy that makes a batch of them.

Places are worked out for many batches in one go, because small calls would cost more than the work; what remains per
batch is the copy. A :class:`Gatherer` holds no thread; several threads may call it at once.
"""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

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
    """Where the windows of one batch are.

    Parameters
    ----------
    parts
        (round, windows) in order: how many windows come from each round.
    x_row, y_row
        int64 [B], first pool row of the inputs and of the targets.
    slot
        int64 [B].
    dataset, basin, start
        int32 [B].
    """

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
    ) -> None:
        self._plan, self._cuts, self._rank, self._rounds = plan, cuts, rank, rounds
        self._shape, self._buffers = shape, buffers
        self._lock = threading.Lock()
        self._recent: dict[int, tuple[RoundWindows, PieceFinder, Order | None]] = {}
        for number in rounds.numbers:
            rounds.use(number, self._users(number))
            rounds.done(number)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._cuts)

    def position_after(self, number: int) -> int:
        """Return the position of the epoch that all ranks have reached after a batch."""
        return self._cuts.bounds(number)[1]

    def locate(self, numbers: range) -> Iterator[Places]:
        """Yield the places of batches in turn, worked out for about :data:`_LOCATED_TOGETHER` windows at a time."""
        together = max(_LOCATED_TOGETHER // self._cuts.batch_size, 1)
        for first in range(0, len(numbers), together):
            yield from self._located([self._slice_of(number) for number in numbers[first : first + together]])

    def gather(self, places: Places) -> Batch:
        """Wait for the rounds of a batch and copy its windows."""
        window, size = self._shape.window, places.start.shape[0]
        x = self._buffers.take((size, window.length, self._shape.num_x))
        y = self._buffers.take((size, window.target_length, self._shape.num_y))
        x_flat, y_flat = x.flatten(1), y.flatten(1)
        if len(places.parts) == 1:
            number = places.parts[0][0]
            self._rounds.get(number).gather(places.x_row, places.y_row, x_flat, y_flat)
            self._rounds.done(number)
        else:
            begin = 0
            for number, count in places.parts:
                mine = slice(begin, begin + count)
                pool = self._rounds.get(number)
                pool.gather(places.x_row[mine], places.y_row[mine], x_flat[mine], y_flat[mine])
                self._rounds.done(number)
                begin += count
        return Batch(
            x=x,
            y=y,
            static=torch.index_select(self._shape.statics, 0, places.slot),
            dataset=places.dataset,
            basin=places.basin,
            start=places.start,
        )

    def _slice_of(self, number: int) -> tuple[int, int]:
        return self._cuts.slice_of(number, self._rank)

    def _users(self, number: int) -> int:
        """Return how many batches take windows from a round."""
        begin, end = self._plan.window_cuts[number : number + 2]
        batches = range(len(self._cuts))
        first = bisect_right(batches, begin, key=lambda i: self._slice_of(i)[1])
        return max(bisect_left(batches, end, key=lambda i: self._slice_of(i)[0]) - first, 0)

    def _located(self, slices: Sequence[tuple[int, int]]) -> Iterator[Places]:
        """Yield the places of several batches, one lookup per round for all of them."""
        cuts = self._plan.window_cuts
        bounds = np.array(slices, dtype=np.int64)
        sizes = bounds[:, 1] - bounds[:, 0]
        done = np.append(0, np.cumsum(sizes))
        position = np.repeat(bounds[:, 0] - done[:-1], sizes) + np.arange(done[-1])
        first = np.searchsorted(cuts, bounds[:, 0], side="right") - 1
        last = np.searchsorted(cuts, bounds[:, 1], side="left") - 1
        row, slot = np.empty(position.size, np.int64), np.empty(position.size, np.int64)
        start = np.empty(position.size, np.int32)
        for number in range(int(first.min()), int(last.max()) + 1):
            begin, end = np.searchsorted(position, cuts[number : number + 2])
            if begin < end:
                windows, finder, order = self._round(number)
                found = windows.locate(position[begin:end] - cuts[number], order, finder)
                row[begin:end], slot[begin:end], start[begin:end] = found
        layout = self._shape.layout
        columns = (row, row + self._shape.window.warmup_length, slot, layout.dataset[slot].astype(np.int32),
                   layout.basin[slot], start)  # fmt: skip
        cut = [torch.split(torch.from_numpy(column), sizes.tolist()) for column in columns]
        for i, (x_row, y_row, of_slot, dataset, basin, begun) in enumerate(zip(*cut, strict=True)):
            edges = np.clip(cuts[first[i] : last[i] + 2], *slices[i])
            yield Places(
                parts=list(zip(range(int(first[i]), int(last[i]) + 1), np.diff(edges).tolist(), strict=True)),
                x_row=x_row, y_row=y_row, slot=of_slot, dataset=dataset, basin=basin, start=begun,
            )  # fmt: skip

    def _round(self, number: int) -> tuple[RoundWindows, PieceFinder, Order | None]:
        """Return the windows of a round and their order; the latest rounds are remembered."""
        with self._lock:
            if number not in self._recent:
                windows, order = self._rounds.windows(number), self._plan.order_of(number)
                kept = {k: v for k, v in self._recent.items() if k >= number - 1}
                self._recent = kept | {number: (windows, PieceFinder(windows.done), order)}
            return self._recent[number]
