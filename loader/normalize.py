"""Moments → mean and scale: what is subtracted and divided, per data set, basin and variable.

Statistics cover the training period of exactly the training basins a loader serves. A basin that is not trained on, or
has no training values, falls back to its data set, a data set without any to all data sets together; a variable that
never varies, or was never seen, keeps scale 1 and is named in one warning.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.catalog import Index
from headrace.loader.columns import numbers
from headrace.loader.sources import DatasetSource
from headrace.schemas.config import NormalizationConfig
from headrace.schemas.moments import Moments, concatenate

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How the variables of one data set are normalised: (value - mean) / std.

    Parameters
    ----------
    mean, std
        float32 [num_basins, V], canonical units; 0 and 1 where nothing is scaled.
    """

    mean: NDArray[np.float32]
    std: NDArray[np.float32]

    def of(self, basins: NDArray[np.int32], column: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return mean and std of one variable for basins, float32 [S] each."""
        return self.mean[basins, column], self.std[basins, column]


def scales_of(
    scalings: Sequence[Scaling], dataset: NDArray[np.int32], basin: NDArray[np.int32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return mean and std of the windows of a batch, float32 [B, V] each."""
    shape = (dataset.size, scalings[0].mean.shape[1])
    mean, std = np.empty(shape, np.float32), np.empty(shape, np.float32)
    for number in np.unique(dataset):
        mine = dataset == number
        mean[mine], std[mine] = scalings[number].mean[basin[mine]], scalings[number].std[basin[mine]]
    return mean, std


def basin_moments(index: Index, sources: Sequence[DatasetSource], names: Sequence[str]) -> list[list[Moments]]:
    """Return the training-period moments of every basin without extremes: per data set, per variable, [num_basins]."""
    periods = {(p["dataset_id"], p["split"]): p for p in index.fetch("periods").to_pylist()}
    found = []
    for source in sources:
        period = periods.get((source.dataset_id, "train"))
        if period is None:
            found.append([Moments.empty(source.num_basins) for _ in names])
            continue
        span = {"start": period["start"], "stop": period["stop"]}
        found.append([_fold_basins(index, source, name, span) for name in names])
    return found


def _fold_basins(index: Index, source: DatasetSource, name: str, span: Mapping[str, int]) -> Moments:
    """Merge the bins of every basin; one variable at a time, because the table is large."""
    table = index.fetch("moments", dataset_id=source.dataset_id, variable=name, **span)
    basin, count, mean, m2 = (numbers(table, column) for column in ("basin", "count", "mean", "m2"))
    unknown = np.broadcast_to(np.nan, count.shape)
    return Moments(count=count, mean=mean, m2=m2, low=unknown, high=unknown).fold(basin, source.num_basins)


def resolve_scaling(
    moments: Sequence[Sequence[Moments]],
    served: Sequence[NDArray[np.bool_]],
    names: Sequence[str],
    normalization: NormalizationConfig,
    dataset_ids: Sequence[str],
    warned: set[str],
) -> list[Scaling]:
    """Choose mean and std for every basin and variable.

    Parameters
    ----------
    moments
        From :func:`basin_moments`.
    served
        bool [num_basins] per data set: training basins that this loader serves.
    names
        Variables.
    normalization
        Method and scope.
    dataset_ids
        For messages.
    warned
        Warnings given before, which are not repeated; takes the new ones.
    """
    shapes = [(len(s), len(names)) for s in served]
    means, stds = [np.zeros(s) for s in shapes], [np.ones(s) for s in shapes]
    if normalization.method == "standard":
        for v, name in enumerate(names):
            chosen = _by_scope([m[v] for m in moments], served, normalization.scope, name, dataset_ids, warned)
            for d, (mean, std) in enumerate(chosen):
                means[d][:, v], stds[d][:, v] = mean, std
    return [Scaling(mean=m.astype(np.float32), std=s.astype(np.float32)) for m, s in zip(means, stds, strict=True)]


def _by_scope(
    basins: list[Moments],
    served: Sequence[NDArray[np.bool_]],
    scope: str,
    name: str,
    dataset_ids: Sequence[str],
    warned: set[str],
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    per_dataset = [_merge(m.take(s)) for m, s in zip(basins, served, strict=True)]
    overall = _merge(concatenate(per_dataset))
    chosen = []
    for d, moments in enumerate(basins):
        whole = overall if scope == "global" or per_dataset[d].count[0] == 0 else per_dataset[d]
        mean, std, count = (np.full(len(moments), float(a[0])) for a in (whole.mean, whole.std, whole.count))
        if scope == "per_basin":
            own = served[d] & (moments.count > 0)
            mean, std = np.where(own, moments.mean, mean), np.where(own, moments.std, std)
            count = np.where(own, moments.count, count)
            lacking = int(np.count_nonzero(served[d] & ~own))
            if lacking:
                who = "1 training basin" if lacking == 1 else f"{lacking} training basins"
                _warn_once(f"{name}: {who} of {dataset_ids[d]} without a value; the data set's statistics hold", warned)
        flat = (count == 0) | ~(std.astype(np.float32) > 0)
        if flat.any():
            why = (
                "has no value in the training period"
                if (count[flat] == 0).all()
                else "never varies in the training period"
            )
            where = f"{int(flat.sum())} of {flat.size} basins"
            _warn_once(f"{name} of {dataset_ids[d]} {why} ({where}): its scale is 1", warned)
        chosen.append((np.where(count > 0, mean, 0.0), np.where(flat, 1.0, std)))
    return chosen


def _warn_once(text: str, warned: set[str]) -> None:
    if text not in warned:
        warned.add(text)
        logger.warning(text)


def _merge(moments: Moments) -> Moments:
    return moments.fold(np.zeros(len(moments), dtype=np.int64), 1)
