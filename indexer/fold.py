"""Facts and scan results to the rows of every table: a pure fold, the same whoever computed which part.

Statistics merge left to right: the bins of a basin, the basins of a data set, the data sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headrace.indexer.facts import DatasetFacts, Inventory, VariableFacts
from headrace.indexer.results import ScanResults, SeriesResult
from headrace.indexer.units import ScanPlan
from headrace.schemas.config import SPLITS, Config, Split
from headrace.schemas.moments import Moments
from headrace.schemas.windows import WindowCount, find_windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Moments over training basins and period.

    Parameters
    ----------
    basins
        Training basins of the data set, ascending.
    by_basin
        [len(basins)].
    of_dataset
        [1].
    """

    basins: NDArray[np.int32]
    by_basin: Moments
    of_dataset: Moments


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetResult:
    """Everything known about one data set once it is scanned."""

    facts: DatasetFacts
    series: Mapping[str, SeriesResult]
    windows: Mapping[Split, WindowCount]
    statistics: Mapping[str, Statistics]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """All data sets, and the statistics over all of them by variable."""

    datasets: tuple[DatasetResult, ...]
    overall: Mapping[str, Moments] = field(default_factory=dict)


def fold(inventory: Inventory, plan: ScanPlan, results: ScanResults) -> Folded:
    """Put the scan's results together, data set by data set."""
    datasets = tuple(_fold_dataset(inventory.config, dataset, plan, results) for dataset in inventory.datasets)
    merged: dict[str, Moments] = {}
    for dataset in datasets:
        for name, found in dataset.statistics.items():
            merged[name] = merged[name].merge(found.of_dataset) if name in merged else found.of_dataset
    return Folded(datasets=datasets, overall=dict(sorted(merged.items())))


def _fold_dataset(config: Config, facts: DatasetFacts, plan: ScanPlan, results: ScanResults) -> DatasetResult:
    own = {planned.variable: planned for planned in plan.variables if planned.dataset_id == facts.dataset_id}
    # Windows first, from the variables that decide them: it takes most memory while few variables are held.
    deciding = {v.name: results.of(own[v.name], facts) for v in (*facts.of_role("target"), *_dropping(config, facts))}
    windows = {split: _windows(config, facts, deciding, split) for split in SPLITS if split in facts.periods}
    series = {name: deciding[name] if name in deciding else results.of(own[name], facts) for name in own}
    statistics = {name: _series_statistics(facts, found) for name, found in series.items()}
    statistics |= {v.name: _static_statistics(facts, facts.statics[v.name]) for v in facts.of_role("static")}
    return DatasetResult(facts=facts, series=series, windows=windows, statistics=dict(sorted(statistics.items())))


def _windows(config: Config, facts: DatasetFacts, series: Mapping[str, SeriesResult], split: Split) -> WindowCount:
    return find_windows(
        spec=config.window.spec(),
        period=facts.periods[split],
        segments=facts.axis.ranges(),
        basins=np.array(facts.basins.of_split(split), dtype=np.int32),
        num_basins=len(facts.basins.ids),
        targets=[series[v.name].intervals() for v in facts.of_role("target")],
        inputs=[series[v.name].intervals() for v in _dropping(config, facts)],
        target_policy=config.missing.target_nan_policy if split == "train" else "keep",
    )


def _dropping(config: Config, facts: DatasetFacts) -> list[VariableFacts]:
    """Return the inputs whose missing values drop a window."""
    default = config.missing.missing_policy
    return [v for v in facts.of_role("input") if (v.config.missing_policy or default) == "drop"]


def _series_statistics(facts: DatasetFacts, found: SeriesResult) -> Statistics:
    basins = np.array(facts.basins.of_split("train"), dtype=np.int32)
    period = facts.periods.get("train")
    if period is None:
        return _merged(basins, Moments.empty(basins.size))
    inside = (found.start >= period.start) & (found.stop <= period.stop)
    place = np.full(len(facts.basins.ids), -1, dtype=np.int64)
    place[basins] = np.arange(basins.size)
    chosen = inside & (place[found.basin] >= 0)
    return _merged(basins, found.moments.take(chosen).fold(place[found.basin[chosen]], basins.size))


def _static_statistics(facts: DatasetFacts, values: NDArray[np.float64]) -> Statistics:
    basins = np.array(facts.basins.of_split("train"), dtype=np.int32)
    return _merged(basins, Moments.of(values[basins][:, None]))


def _merged(basins: NDArray[np.int32], by_basin: Moments) -> Statistics:
    whole = by_basin.fold(np.zeros(len(by_basin), dtype=np.int64), 1)
    return Statistics(basins=basins, by_basin=by_basin, of_dataset=whole)
