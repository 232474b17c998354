"""Plans without any store: layouts from runs of windows, rounds of a share of their rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout, lay_out
from headrace.loader.partition import SharedCuts
from headrace.loader.round_windows import windows_at
from headrace.loader.sampled_plan import Sampling, plan_sampled
from headrace.loader.schedule import EpochPlan, plan_epoch
from headrace.loader.shuffle_quality import ShuffleQuality, quality_of
from headrace.loader.tiles import Tiles, cut_tiles, tile_starts
from headrace.loader.times import DatasetTimes
from headrace.loader.windows import Windows
from headrace.schemas.config import SamplingConfig
from headrace.schemas.time_axis import Segment, TimeAxis


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What an epoch of a split is planned from, for rounds of one size."""

    length: int
    layout: Layout
    tiles: Tiles
    column: NDArray[np.int64]
    round_steps: int

    def epoch(self, **settings: Any) -> EpochPlan:
        given = {"seed": 0, "epoch": 0, "shuffle": True, **settings}
        resident = self.round_steps >= self.layout.num_rows
        return plan_epoch(self.tiles, self.column, round_steps=self.round_steps, resident=resident, **given)

    def sampled(self, *, limit: int | None = None, weights: Sequence[float] = (), **settings: Any) -> EpochPlan:
        """Plan an epoch by quotas; settings of the sampling section and of the plan."""
        keys = SamplingConfig.model_fields.keys() & settings.keys()
        dataset = self.layout.dataset.astype(np.int64)
        sampling = Sampling(
            config=SamplingConfig(**{k: settings.pop(k) for k in keys}),
            dataset=dataset,
            weights=np.array(weights or [1.0] * (int(dataset.max()) + 1)),
        )
        available = int(sampling.available(self.tiles).sum())
        length = available if limit is None else min(limit, available)
        given = {"seed": 0, "epoch": 0, "shuffle": True, **settings}
        resident = self.round_steps >= self.layout.num_rows
        return plan_sampled(
            self.tiles, sampling, round_steps=self.round_steps, resident=resident, length=length, **given
        )

    def served(self, plan: EpochPlan) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return slot and start of every window of an epoch, in the order they are served."""
        slot, start = windows_at(self.tiles, plan, np.arange(plan.num_windows))
        return slot, start.astype(np.int64)

    def quality(
        self, plan: EpochPlan, *, batch_size: int, chunk_steps: int, max_batches: int | None = None
    ) -> ShuffleQuality:
        cuts = SharedCuts(first=0, total=plan.num_windows, batch_size=batch_size)
        axis = TimeAxis(segments=(Segment(start=0, stop=200_000, seconds=0),), step_seconds=86400, calendar="standard")
        times = [DatasetTimes(axis=axis, chunk_steps=chunk_steps)] * (int(self.layout.dataset.max()) + 1)
        return quality_of(
            plan, self.tiles, self.layout, times, cuts, rank=0, length=self.length, max_batches=max_batches
        )


def planned(windows: Windows, length: int, share: float, *, basins_per_chunk: int = 4) -> Planned:
    """Cut tiles for rounds that hold ``share`` of the split's rows, all of it from 1 on."""
    layout = lay_out(windows, length)
    round_steps = max(int(layout.num_rows * min(share, 1.0)), length)
    return Planned(
        length=length,
        layout=layout,
        tiles=cut_tiles(windows, layout, length, tile_starts(layout, length, round_steps)),
        column=(layout.dataset.astype(np.int64) << 32) + layout.basin // basins_per_chunk,
        round_steps=round_steps,
    )
