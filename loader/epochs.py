"""Which plan an epoch of a loader has: every window once, or by quotas and caps; and what each basin gets of it."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.loader.assemble import Serving
from headrace.loader.progress import windows_of_epoch
from headrace.loader.sampled_plan import Sampling, plan_sampled
from headrace.loader.schedule import EpochPlan, plan_epoch
from headrace.loader.spec import ServeSpec


def epoch_totals(serving: Serving, spec: ServeSpec, batch_size: int) -> tuple[int, ...]:
    """Return the windows that an epoch serves of each share of the split.

    Parameters
    ----------
    serving, spec
        What is served.
    batch_size
        Windows of one batch of all ranks that serve a share.
    """
    loads = serving.loads
    if spec.sampling.max_windows_per_basin is not None:  # ranks then share the whole split
        loads = (int(_sampling(serving, spec).available(serving.tiles).sum()),)
    return windows_of_epoch(loads, spec.sampling.max_batches_per_epoch, batch_size)


def plan_of(serving: Serving, spec: ServeSpec, *, seed: int, epoch: int, length: int) -> EpochPlan:
    """Plan an epoch of so many windows; a pure function of its arguments."""
    sampling, tiles = spec.sampling, serving.tiles
    once = sampling.mode == "weighted_by_sample" or not spec.shuffle
    if once and sampling.max_windows_per_basin is None and length == int(tiles.num_windows.sum()):
        return plan_epoch(
            tiles, serving.column, seed=seed, epoch=epoch, round_steps=serving.round_steps, shuffle=spec.shuffle,
            resident=serving.one_round,
        )  # fmt: skip
    return plan_sampled(
        tiles, _sampling(serving, spec), seed=seed, epoch=epoch, round_steps=serving.round_steps, shuffle=spec.shuffle,
        resident=serving.one_round, length=length,
    )  # fmt: skip


def windows_by_basin(serving: Serving, plan: EpochPlan) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many windows every slot has and how many of them, repeats counted, an epoch serves; int64 [slots]."""
    tiles, slots = serving.tiles, serving.shape.layout.num_slots
    there = np.bincount(tiles.slot, weights=tiles.num_windows, minlength=slots).astype(np.int64)
    if plan.uses is None:
        return there, there
    taken = plan.uses.stretches
    return there, np.bincount(tiles.slot[taken.tile], weights=taken.count, minlength=slots).astype(np.int64)


def exposure_table(serving: Serving, spec: ServeSpec, plan: EpochPlan) -> pa.Table:
    """Return dataset_id, basin_id, num_windows (int64) and served (int64): a row for every basin that has a window."""
    layout = serving.shape.layout
    there, served = windows_by_basin(serving, plan)
    places = list(zip(layout.dataset.tolist(), layout.basin.tolist(), strict=True))
    return pa.table(
        {
            "dataset_id": pa.array([spec.dataset_ids[d] for d, _ in places], pa.string()),
            "basin_id": pa.array([serving.basin_ids[d][b] for d, b in places], pa.string()),
            "num_windows": there,
            "served": served,
        }
    )


def left_out(serving: Serving, plan: EpochPlan) -> str | None:
    """Return what to say about basins that get no window in an epoch; None where every basin gets one."""
    if plan.uses is None:
        return None
    without, every = int((windows_by_basin(serving, plan)[1] == 0).sum()), serving.shape.layout.num_slots
    if without == 0:
        return None
    return (
        f"{without} of {every} basins get no window in epoch {plan.epoch}, which serves {plan.num_windows} windows; "
        "WindowLoader.exposure() lists them. Sampling quotas and max_batches_per_epoch decide it; later epochs of a "
        "shuffled split take the windows that this one leaves"
    )


def _sampling(serving: Serving, spec: ServeSpec) -> Sampling:
    return Sampling(
        config=spec.sampling,
        dataset=serving.shape.layout.dataset.astype(np.int64),
        weights=np.array(spec.weights, dtype=np.float64),
    )
