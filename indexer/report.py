"""What a build found, as numbers and named warnings: the summary prints it, other code reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.indexer.decode_rules import absent_is_zero
from headrace.indexer.facts import DatasetFacts, Inventory
from headrace.indexer.fold import DatasetResult, Folded
from headrace.indexer.units import AbsentZeros, ScanPlan
from headrace.objects.counts import RequestCounts
from headrace.schemas.config import Split
from headrace.schemas.manifest import IndexManifest
from headrace.schemas.sentinels import looks_like_flag

MANY_CHUNKS, TINY_NBYTES = 10_000, 1 << 20
"""From so many chunks of fewer bytes on, opening them costs more than reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReport:
    """Windows of one split of one data set, and why others are not served."""

    dataset_id: str
    split: Split
    num_basins: int
    num_windows: int
    dropped: Mapping[str, int]
    basins_without: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableReport:
    """One variable of one data set; ``mean`` to ``high`` are of training values, NaN where there is none."""

    dataset_id: str
    variable: str
    role: str
    unit: str
    missing_share: float
    mean: float
    std: float
    low: float
    high: float
    missing_rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """How the scan went; ``requests`` counts what the whole build asked of object stores, workers included."""

    units_scanned: int
    units_kept: int
    nbytes: int
    seconds: float
    requests: RequestCounts

    @property
    def rate(self) -> float:
        """Decoded bytes per second; 0 where nothing was scanned."""
        return self.nbytes / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """Result of :func:`headrace.indexer.build_index`."""

    out: str
    manifest: IndexManifest
    splits: tuple[SplitReport, ...]
    variables: tuple[VariableReport, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    scan: ScanReport

    @property
    def num_windows(self) -> int:
        """Windows of all data sets and splits."""
        return sum(s.num_windows for s in self.splits)


def make_report(
    *, out: str, manifest: IndexManifest, inventory: Inventory, plan: ScanPlan, folded: Folded, scan: ScanReport
) -> BuildReport:
    """Put the report together."""
    variables = [v for result in folded.datasets for v in _variables(result)]
    splits = [s for result in folded.datasets for s in _splits(result)]
    warnings = [
        *inventory.remarks,
        *(_absent(a, inventory.config.missing.absent_chunk) for a in plan.absent),
        *(w for result in folded.datasets for w in _gaps(result)),
        *_flat_variables(folded),
        *(w for result in folded.datasets for w in _suspicious(result)),
        *(w for result in folded.datasets for w in _unreadable(result)),
        *(w for s in splits for w in _empty_splits(s)),
    ]
    return BuildReport(
        out=out,
        manifest=manifest,
        splits=tuple(splits),
        variables=tuple(variables),
        warnings=tuple(warnings),
        notes=tuple(_notes(variables, inventory)),
        scan=scan,
    )


def _notes(variables: Sequence[VariableReport], inventory: Inventory) -> list[str]:
    """Say what was taken, which missing rule it got, and where an unwritten chunk looks like zero flow."""
    by_rule: dict[str, list[str]] = {}
    for variable in variables:
        by_rule.setdefault(variable.missing_rule, []).append(f"{variable.dataset_id}.{variable.variable}")
    notes = [
        f"{d.dataset_id}: {len(d.basins.ids)} of the store's {d.num_store_rows} basins, {d.axis.num_steps} steps"
        for d in inventory.datasets
    ]
    notes += [f"missing rule [{rule}]: {_listed(names)}" for rule, names in by_rule.items()]
    zero_filled = [
        f"{dataset.dataset_id}.{variable.name}"
        for dataset in inventory.datasets
        for variable in dataset.of_role("target")
        if variable.stored is not None and variable.stored.dtype.kind == "f" and absent_is_zero(variable.stored)
    ]
    if zero_filled:
        notes.append(f"fill value 0, so a chunk that was never written reads as 0: target {_listed(zero_filled)}")
    return notes + [note for dataset in inventory.datasets for note in _tiny_chunks(dataset)]


def _tiny_chunks(dataset: DatasetFacts) -> list[str]:
    notes = []
    for variable in dataset.series():
        assert variable.stored is not None
        grid = variable.stored.grid
        num_chunks = grid.basin.num_chunks * grid.time.num_chunks
        nbytes = grid.basin.chunk_size * grid.time.chunk_size * variable.stored.dtype.itemsize
        if num_chunks >= MANY_CHUNKS and nbytes < TINY_NBYTES:
            notes.append(
                f"{dataset.dataset_id}, {variable.name}: {num_chunks:,} stored chunks of {nbytes:,} bytes each; "
                "with chunks of 1 MB or more a store is read many times faster"
            )
    return notes


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _splits(result: DatasetResult) -> list[SplitReport]:
    reports = []
    for split, found in result.windows.items():
        basins = result.facts.basins.of_split(split)
        kept = np.bincount(found.runs.basin, weights=found.runs.num_windows, minlength=len(result.facts.basins.ids))
        reports.append(
            SplitReport(
                dataset_id=result.facts.dataset_id,
                split=split,
                num_basins=len(basins),
                num_windows=int(found.runs.num_windows.sum()),
                dropped={reason: int(counts.sum()) for reason, counts in found.dropped.items() if counts.any()},
                basins_without=int((kept[basins] == 0).sum()),
            )
        )
    return reports


def _variables(result: DatasetResult) -> list[VariableReport]:
    reports = []
    for variable in result.facts.variables:
        stats = result.statistics.get(variable.name)
        if variable.stored is None or stats is None:
            continue
        m = stats.of_dataset
        numbers = (m.mean, m.std, m.low, m.high)
        mean, std, low, high = (float(n[0]) if m.count[0] else float("nan") for n in numbers)
        reports.append(
            VariableReport(
                dataset_id=result.facts.dataset_id,
                variable=variable.name,
                role=variable.role,
                unit=variable.unit,
                missing_share=_missing_share(result, variable.name),
                mean=mean,
                std=std,
                low=low,
                high=high,
                missing_rule=variable.missing_rule,
            )
        )
    return reports


def _missing_share(result: DatasetResult, name: str) -> float:
    """Share of missing values over all configured basins and the whole record."""
    if name not in result.series:
        return float(np.isnan(result.facts.statics[name]).mean())
    runs = result.series[name].runs
    total = len(result.facts.basins.ids) * result.facts.axis.num_steps
    return 1.0 - int((runs.stop.astype(np.int64) - runs.start).sum()) / total


def _absent(absent: AbsentZeros, policy: str) -> str:
    meaning = {"valid_zero": "they count as 0", "missing": "they are missing"}.get(policy, policy)
    advice = " - if nothing was written there, set missing.absent_chunk: missing" if policy == "valid_zero" else ""
    return (
        f"{absent.dataset_id}, {absent.role} {absent.variable}: {absent.num_absent} of {absent.num_chunks} chunks "
        f"are not stored and the fill value is 0; {meaning} (absent_chunk: {policy}){advice}"
    )


def _gaps(result: DatasetResult) -> list[str]:
    axis = result.facts.axis
    if len(axis.segments) == 1:
        return []
    return [f"{result.facts.dataset_id}: the time axis has {len(axis.segments) - 1} gaps; no window crosses them"]


def _flat_variables(folded: Folded) -> list[str]:
    """Name variables that normalisation cannot scale, as far as training data goes."""
    found = []
    for name, m in folded.overall.items():
        if m.count[0] == 0:
            found.append(f"{name}: no observed value in any training period; it is scaled by 1")
        elif m.m2[0] == 0:
            found.append(f"{name}: every training value is {m.mean[0]:g} (standard deviation 0); it is scaled by 1")
        empty = [
            d.facts.dataset_id
            for d in folded.datasets
            if name in d.statistics and d.statistics[name].of_dataset.count[0] == 0
        ]
        if empty and m.count[0]:
            found.append(f"{name}: no observed training value in {', '.join(empty)}")
    return found


def _suspicious(result: DatasetResult) -> list[str]:
    """Name variables whose smallest or largest value looks like an undeclared flag and occurs in several basins."""
    found = []
    for name, stats in result.statistics.items():
        for extreme, side, values in (
            ("smallest", "low", stats.by_basin.low),
            ("largest", "high", stats.by_basin.high),
        ):
            value = float(getattr(stats.of_dataset, side)[0])
            if not looks_like_flag(value):
                continue
            share = int((values == value).sum())
            found.append(
                f"{result.facts.dataset_id}, {name}: {share} of {len(stats.basins)} basins have {value:g} as "
                f"{extreme} value, a usual flag for missing; if it is one, set missing_values: [{value:g}]"
            )
    return found


def _unreadable(result: DatasetResult) -> list[str]:
    found = []
    for name, series in result.series.items():
        states = series.chunks.field("state").to_pylist()
        if "error" in states:
            found.append(
                f"{result.facts.dataset_id}, {name}: {states.count('error')} chunks cannot be decoded "
                "and count as missing (on_bad_chunk: missing)"
            )
    return found


def _empty_splits(split: SplitReport) -> Sequence[str]:
    if split.num_windows or not split.num_basins:
        return []
    why = (
        ", ".join(f"{n} {reason}" for reason, n in split.dropped.items())
        or "the period is shorter than the targets of one window"
    )
    return [f"{split.dataset_id}, {split.split}: no window can be served ({why})"]
