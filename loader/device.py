"""How batches come to the device that computes: not at all (CPU), as rows of rounds, or batch by batch.

All three look the same to the loader: they stand around the rounds, choose who makes the batches, and hand them out.
On a device that has room the rounds are copied there once and windows gathered there, so a row crosses the bus once
and not with every window it is part of. Where there is no room batches are made on the host and copied ahead of use.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import torch

from headrace.loader.batch import Batch
from headrace.loader.buffers import BufferPool
from headrace.loader.device_gather import DeviceGatherer, PendingBatch
from headrace.loader.device_rounds import BufferedDeviceRounds, ResidentDeviceRounds
from headrace.loader.gather import BatchShape, Gatherer
from headrace.loader.lane import CudaLane, Lane, Mark
from headrace.loader.partition import BatchCuts
from headrace.loader.rounds import RoundQueue, Rounds
from headrace.loader.schedule import EpochPlan
from headrace.loader.tiles import Tiles
from headrace.loader.upload import Upload


class Transfer(Protocol):
    """The way of batches to where they are used."""

    def rounds(self, source: Rounds) -> Rounds:
        """Return the rounds to gather from."""

    def gatherer(
        self, *, plan: EpochPlan, cuts: BatchCuts, rank: int, rounds: RoundQueue, shape: BatchShape, together: int
    ) -> Gatherer:
        """Return who makes the batches of an epoch, where it helps several together."""

    def batches(self, made: Iterable[Batch]) -> Iterator[Batch]:
        """Hand out batches in order, ready for the stream that the calling thread computes on."""

    def close(self) -> None:
        """Wait for copies under way and let go of all memory."""


class StayOnHost:
    """Batches for the CPU: nothing is copied."""

    def __init__(self) -> None:
        self._buffers = BufferPool()

    def rounds(self, source: Rounds) -> Rounds:
        """Return the host's rounds."""
        return source

    def gatherer(
        self, *, plan: EpochPlan, cuts: BatchCuts, rank: int, rounds: RoundQueue, shape: BatchShape, together: int
    ) -> Gatherer:
        """Return who makes the batches, in memory that is used again."""
        return Gatherer(
            plan=plan, cuts=cuts, rank=rank, rounds=rounds, shape=shape, buffers=self._buffers, together=together
        )  # fmt: skip

    def batches(self, made: Iterable[Batch]) -> Iterator[Batch]:
        """Hand out batches as they are."""
        return iter(made)

    def close(self) -> None:
        """Let go of the buffers."""
        self._buffers = BufferPool()


class CopyBatches:
    """Batches made on the host in pinned memory and copied some ahead of use.

    Parameters
    ----------
    lane
        The device.
    ahead
        Batches on their way while one is used.
    """

    def __init__(self, lane: Lane, ahead: int) -> None:
        self._lane, self._ahead = lane, ahead

    def rounds(self, source: Rounds) -> Rounds:
        """Return the host's rounds."""
        return source

    def gatherer(
        self, *, plan: EpochPlan, cuts: BatchCuts, rank: int, rounds: RoundQueue, shape: BatchShape, together: int
    ) -> Gatherer:
        """Return who makes the batches, in pinned memory."""
        buffers = _PinnedBuffers(self._lane)
        return Gatherer(
            plan=plan, cuts=cuts, rank=rank, rounds=rounds, shape=shape, buffers=buffers, together=together
        )  # fmt: skip

    def batches(self, made: Iterable[Batch]) -> Iterator[Batch]:
        """Hand out batches in order; an error comes after the batches that were made before it."""
        coming, under_way = iter(made), deque[tuple[Batch, Mark]]()
        failed: Exception | None = None
        more = True
        while True:
            while more and len(under_way) <= self._ahead:
                try:
                    batch = next(coming)
                except StopIteration:
                    more = False
                except Exception as error:  # noqa: BLE001 - raised below, in its turn
                    failed, more = error, False
                else:
                    under_way.append(self._send(batch))
            if not under_way:
                if failed is not None:
                    raise failed
                return
            batch, sent = under_way.popleft()
            self._lane.wait(sent)
            for name in Batch.__slots__:
                self._lane.keep(getattr(batch, name))
            yield batch

    def close(self) -> None:
        """Nothing is held: pinned memory waits for its copies by itself."""

    def _send(self, batch: Batch) -> tuple[Batch, Mark]:
        """Queue the copy of a batch; x and y are in pinned memory, the small rest is brought there."""
        lane, sent = self._lane, {}
        with lane.side():
            for name in Batch.__slots__:
                source = getattr(batch, name)
                if name not in ("x", "y"):
                    source = lane.pinned(source.shape, source.dtype).copy_(source)
                sent[name] = lane.empty(source.shape, source.dtype)
                lane.copy(sent[name], source)
            return Batch(**sent), lane.mark()


class GatherOnDevice:
    """Rounds copied to the device, windows gathered there when the batch is handed out.

    Parameters
    ----------
    lane
        The device.
    shape, tiles
        What is served.
    num_rows
        Rows of the device's memory: all of a split that stays, or one of the buffers.
    num_pools
        Buffers; None where the split stays.
    """

    def __init__(self, lane: Lane, *, shape: BatchShape, tiles: Tiles, num_rows: int, num_pools: int | None) -> None:
        self._lane, self._shape, self._tiles, self._num_pools = lane, shape, tiles, num_pools
        self._size = num_rows, shape.num_x, shape.num_y
        self._upload = Upload(lane)
        self._statics = lane.empty(shape.statics.shape, torch.float32)
        self._statics.copy_(shape.statics)
        self._around: tuple[Rounds, Rounds] | None = None

    def rounds(self, source: Rounds) -> Rounds:
        """Return the rounds on the device; the same ones, with what they hold, as long as the host's are the same."""
        if self._around is None or self._around[0] is not source:
            self._around = source, self._stand_around(source)
        return self._around[1]

    def _stand_around(self, source: Rounds) -> Rounds:
        window, lane, upload = self._shape.window, self._lane, self._upload
        if self._num_pools is None:
            layout = self._shape.layout
            return ResidentDeviceRounds(source, self._tiles, layout, window, lane=lane, upload=upload, shape=self._size)
        return BufferedDeviceRounds(
            source, window, lane=lane, upload=upload, shape=self._size, num_pools=self._num_pools
        )  # fmt: skip

    def gatherer(
        self, *, plan: EpochPlan, cuts: BatchCuts, rank: int, rounds: RoundQueue, shape: BatchShape, together: int
    ) -> Gatherer:
        """Return who makes the batches ready to be gathered."""
        return DeviceGatherer(
            plan=plan, cuts=cuts, rank=rank, rounds=rounds, shape=shape, lane=self._lane, statics=self._statics
        )  # fmt: skip

    def batches(self, made: Iterable[Batch | PendingBatch]) -> Iterator[Batch]:
        """Gather on the stream of the calling thread."""
        for batch in made:
            yield batch if isinstance(batch, Batch) else batch.gather()

    def close(self) -> None:
        """Wait for copies under way and let go of the device's memory."""
        self._upload.finish()
        self._around = None


class _PinnedBuffers(BufferPool):
    """Pinned memory; torch's cache of pinned blocks gives one out again when the copies from it are done."""

    def __init__(self, lane: Lane) -> None:
        super().__init__()
        self._lane = lane

    def take(self, shape: Sequence[int]) -> torch.Tensor:
        """Return an uninitialised float32 tensor of the shape."""
        return self._lane.pinned(shape, torch.float32)


def lane_of(device: torch.device) -> Lane | None:
    """Return the lane of a device; None is the CPU."""
    return None if device.type == "cpu" else CudaLane(device)


def choose_transfer(
    device: torch.device,
    *,
    budget_nbytes: int | None,
    prefetch: bool,
    ahead: int,
    shape: BatchShape,
    tiles: Tiles,
    round_steps: int,
    num_pools: int,
    resident: bool,
) -> Transfer:
    """Choose the way: rounds on the device if they fit, batch by batch if not; on the CPU neither.

    Parameters
    ----------
    device
        Where batches are used.
    budget_nbytes
        Memory of the device for rounds; None is a quarter of what is free.
    prefetch
        Whether anything is brought there ahead of use; if not, each batch is copied when it is asked for.
    ahead
        Batches on their way where rounds do not fit.
    shape, tiles, round_steps, num_pools, resident
        What is served, rows of a round, rounds in memory at once, and whether the whole split stays in memory.
    """
    lane = lane_of(device)
    if lane is None:
        return StayOnHost()
    if not prefetch:
        return CopyBatches(lane, 0)
    num_rows = shape.layout.num_rows if resident else round_steps
    buffers = 1 if resident else num_pools
    needed = 4 * (buffers * num_rows * (shape.num_x + shape.num_y) + shape.statics.numel())
    if needed > (lane.free_nbytes() // 4 if budget_nbytes is None else budget_nbytes):
        return CopyBatches(lane, ahead)
    return GatherOnDevice(lane, shape=shape, tiles=tiles, num_rows=num_rows, num_pools=None if resident else num_pools)
