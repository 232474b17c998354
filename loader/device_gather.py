"""Batches gathered on a device: places are worked out in threads, the gather is queued where the batch is used.

Legend: B windows.
"""

from dataclasses import dataclass

import torch

from headrace.loader.batch import Batch
from headrace.loader.buffers import BufferPool
from headrace.loader.gather import BatchShape, Gatherer, Places
from headrace.loader.lane import Lane
from headrace.loader.partition import BatchCuts
from headrace.loader.rounds import RoundQueue
from headrace.loader.schedule import EpochPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingBatch:
    """A batch of which all is known but the values.

    Parameters
    ----------
    rows
        int64 [3, B], pinned: pool row of the inputs, of the targets, and slot.
    ids
        int32 [3, B], pinned: data set, basin, start.
    parts
        (round, windows) in order.
    rounds, shape, lane, statics
        Where windows come from, what a batch looks like, the device, and the statics there.
    """

    rows: torch.Tensor
    ids: torch.Tensor
    parts: list[tuple[int, int]]
    rounds: RoundQueue
    shape: BatchShape
    lane: Lane
    statics: torch.Tensor

    def gather(self) -> Batch:
        """Queue the gather on the stream of the calling thread and give the rounds back after it."""
        lane, window, size = self.lane, self.shape.window, self.ids.shape[1]
        rows, ids = lane.empty(self.rows.shape, torch.int64), lane.empty(self.ids.shape, torch.int32)
        lane.copy(rows, self.rows)
        lane.copy(ids, self.ids)
        x = lane.empty((size, window.length, self.shape.num_x), torch.float32)
        y = lane.empty((size, window.target_length, self.shape.num_y), torch.float32)
        x_flat, y_flat, begin = x.flatten(1), y.flatten(1), 0
        for number, count in self.parts:
            mine = slice(begin, begin + count)
            pool = self.rounds.get(number)  # at hand, but for a batch over three rounds, which waits for its own first
            pool.gather(rows[0, mine], rows[1, mine], x_flat[mine], y_flat[mine])
            self.rounds.done(number)
            begin += count
        return Batch(
            x=x,
            y=y,
            static=torch.index_select(self.statics, 0, rows[2]),
            dataset=ids[0],
            basin=ids[1],
            start=ids[2],
        )


class DeviceGatherer(Gatherer):
    """Make batches ready to be gathered on a device.

    Parameters
    ----------
    plan, cuts, rank, rounds, shape
        As for :class:`Gatherer`.
    lane
        The device.
    statics
        float32 [slots, Vs], there.
    """

    def __init__(
        self,
        *,
        plan: EpochPlan,
        cuts: BatchCuts,
        rank: int,
        rounds: RoundQueue,
        shape: BatchShape,
        lane: Lane,
        statics: torch.Tensor,
    ) -> None:
        super().__init__(plan=plan, cuts=cuts, rank=rank, rounds=rounds, shape=shape, buffers=BufferPool())
        self._lane, self._statics = lane, statics

    def gather(self, places: Places) -> list[PendingBatch]:  # type: ignore[override]  # finished where handed out
        """Bring the places of a job, which is one batch, to pinned memory and wait for its first two rounds.

        No more than two are in memory at once, and a third one comes when the batch is done with the first.
        """
        size = places.start.shape[0]
        rows, ids = self._lane.pinned((3, size), torch.int64), self._lane.pinned((3, size), torch.int32)
        for row, values in zip(rows, (places.x_row, places.y_row, places.slot), strict=True):
            row.copy_(values)
        for row, values in zip(ids, (places.dataset, places.basin, places.start), strict=True):
            row.copy_(values)
        for number, _ in places.parts[:2]:
            self._rounds.get(number)
        pending = PendingBatch(
            rows=rows,
            ids=ids,
            parts=places.parts,
            rounds=self._rounds,
            shape=self._shape,
            lane=self._lane,
            statics=self._statics,
        )
        return [pending]
