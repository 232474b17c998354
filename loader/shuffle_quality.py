"""How well the batches of an epoch are mixed, from the plan alone: against a perfect shuffle, and tenth by tenth.

A perfect shuffle is a random permutation of the very windows that the epoch serves. Batches are sampled evenly over
the epoch, as many from each tenth; for each the distinct basins, tiles, stored time chunks and months of the year are
counted, and the entropy of data sets, basins and time chunks is worked out. Nothing is read.

Legend: N sampled batches, B windows of a batch.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout
from headrace.loader.partition import SharedCuts
from headrace.loader.permutation import Permutation, derive_key
from headrace.loader.round_windows import windows_at
from headrace.loader.schedule import EpochPlan
from headrace.loader.tiles import Tiles
from headrace.loader.times import DatasetTimes
from headrace.loader.window_loader import WindowLoader

_KINDS = ("basins", "tiles", "time_chunks", "months")
_ENTROPIES = ("dataset", "basin", "time_chunk")
_PERFECT = 0x5045524645
"""Purpose of the perfect shuffle's key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleQuality:
    """Mixing of one epoch.

    Parameters
    ----------
    epoch, rounds
        Which epoch, and how many rounds it has.
    batches, batch_size
        How many batches were looked at, and their windows.
    served
        Means per batch of the plan: ``distinct_basins``, ``distinct_tiles``, ``distinct_time_chunks``,
        ``distinct_months``, ``entropy_dataset``, ``entropy_basin``, ``entropy_time_chunk`` (in nats).
    perfect
        The same of a perfect shuffle.
    by_tenth
        The same as ``served``, for each tenth of the epoch in order, with its number as ``tenth``.
    """

    epoch: int
    rounds: int
    batches: int
    batch_size: int
    served: dict[str, float]
    perfect: dict[str, float]
    by_tenth: list[dict[str, float]]

    @property
    def worst_tenth_ratio(self) -> float:
        """Distinct basins or time chunks per batch of the worst tenth, by those of the first."""
        kinds = ("distinct_basins", "distinct_time_chunks")
        return min(tenth[kind] / self.by_tenth[0][kind] for tenth in self.by_tenth for kind in kinds)

    def as_dict(self) -> dict[str, float]:
        """Return every mean, its perfect value (``…_perfect``) and their ratio (``…_ratio``), flat."""
        flat: dict[str, float] = {
            "epoch": self.epoch, "rounds": self.rounds, "batches": self.batches, "batch_size": self.batch_size,
        }  # fmt: skip
        for name, value in self.served.items():
            best = self.perfect[name]
            flat[name], flat[f"{name}_perfect"] = value, best
            flat[f"{name}_ratio"] = value / best if best else 1.0
        return flat | {"worst_tenth_ratio": self.worst_tenth_ratio}


def measure_quality(loader: WindowLoader, *, max_batches: int | None = 400) -> ShuffleQuality:
    """Measure the epoch that a loader serves next, on its own rank's batches.

    Parameters
    ----------
    loader
        Open or closed; nothing is read.
    max_batches
        Batches to look at, spread evenly over the epoch; None looks at all.
    """
    plan, serving = loader.plan(), loader.serving
    shared = len(serving.loads) == 1  # else the plan is of this rank alone
    cuts = SharedCuts(
        first=0, total=plan.num_windows, batch_size=loader.batch_size, world_size=loader.world_size if shared else 1
    )
    return quality_of(
        plan, serving.tiles, serving.shape.layout, serving.times, cuts, rank=loader.rank if shared else 0,
        length=loader.window.length, max_batches=max_batches,
    )  # fmt: skip


def quality_of(
    plan: EpochPlan,
    tiles: Tiles,
    layout: Layout,
    times: list[DatasetTimes],
    cuts: SharedCuts,
    *,
    rank: int,
    length: int,
    max_batches: int | None,
) -> ShuffleQuality:
    """Measure a plan.

    Parameters
    ----------
    plan, tiles, layout, times
        The epoch and what it is made from.
    cuts, rank
        Batches and whose slices. A last batch of another size is left out where there are others.
    length
        L, input steps of a window; time chunk and month are those of its last step.
    max_batches
        Batches to look at; None looks at all.
    """
    full = max(len(cuts) - 1, 1)
    tenths = [t for t in np.array_split(np.arange(full), 10) if t.size]
    most = full if max_batches is None else max(max_batches // len(tenths), 1)
    chosen = [t[np.unique(np.linspace(0, t.size - 1, min(most, t.size)).astype(np.int64))] for t in tenths]
    begin, end = cuts.slice_of(0, rank)
    slices = np.array([cuts.slice_of(int(n), rank)[0] for n in np.concatenate(chosen)])
    positions = slices[:, None] + np.arange(end - begin)
    shuffle = Permutation(derive_key(plan.seed, plan.epoch, _PERFECT), plan.num_windows)
    served, perfect = (
        _measures(windows_at(tiles, plan, p), positions.shape, tiles, layout, times, length)
        for p in (positions.ravel(), shuffle(positions.ravel()))
    )
    borders = np.cumsum([c.size for c in chosen])[:-1]
    parts = {name: np.split(values, borders) for name, values in served.items()}
    return ShuffleQuality(
        epoch=plan.epoch,
        rounds=plan.num_rounds,
        batches=positions.shape[0],
        batch_size=positions.shape[1],
        served={name: float(values.mean()) for name, values in served.items()},
        perfect={name: float(values.mean()) for name, values in perfect.items()},
        by_tenth=[
            {"tenth": t + 1} | {name: float(values[t].mean()) for name, values in parts.items()}
            for t in range(len(chosen))
        ],
    )


def _measures(
    places: tuple[NDArray[np.int64], NDArray[np.int32]],
    shape: tuple[int, ...],
    tiles: Tiles,
    layout: Layout,
    times: list[DatasetTimes],
    length: int,
) -> dict[str, NDArray[np.float64]]:
    """Return every measure per batch, float64 [N]; ``places`` are slot and start of the N·B windows."""
    slot, start = places
    dataset, step = layout.dataset[slot].astype(np.int64), start.astype(np.int64) + length - 1
    chunk, month = np.empty_like(step), np.empty_like(step)
    for number in np.unique(dataset).tolist():
        own = dataset == number
        chunk[own], month[own] = times[number].chunk_of(step[own]), times[number].month_of(step[own])
    key = tiles.slot << 32 | tiles.step_start
    tile = np.searchsorted(key, slot << 32 | start.astype(np.int64), side="right") - 1
    kinds = {
        "dataset": dataset, "basins": slot, "tiles": tile, "time_chunks": dataset << 32 | chunk, "months": month
    }  # fmt: skip
    rows = {name: np.sort(np.unique(v, return_inverse=True)[1].reshape(shape), axis=1) for name, v in kinds.items()}
    found = {f"distinct_{name}": 1.0 + (np.diff(rows[name], axis=1) != 0).sum(axis=1) for name in _KINDS}
    sources = {"dataset": "dataset", "basin": "basins", "time_chunk": "time_chunks"}
    return found | {f"entropy_{name}": _entropy(rows[sources[name]]) for name in _ENTROPIES}


def _entropy(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the entropy of the values of every row, in nats, float64 [N]; rows [N, B] are sorted."""
    batches, size = rows.shape
    new = np.append(np.ones((batches, 1), dtype=bool), rows[:, 1:] != rows[:, :-1], axis=1)
    first = np.flatnonzero(new)
    share = np.diff(np.append(first, batches * size)) / size
    return np.bincount(first // size, weights=-share * np.log(share), minlength=batches).astype(np.float64)
