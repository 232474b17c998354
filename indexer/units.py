"""Plan the scan: cut every variable into units, name each by what it depends on, bundle units into tasks.

A unit is one variable × one basin chunk × one moment bin (whole time chunks, at least 4,096 steps together). It holds
locators only. Its key digests everything its result depends on, and nothing else: no window, no policy, and a period
only through the cuts it makes inside the unit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headrace.indexer.decode_rules import AbsentPolicy, absent_is_zero
from headrace.indexer.facts import DatasetFacts, Inventory, VariableFacts
from headrace.indexer.fingerprint import digest, layout_digest, metadata_digest, objects_digest, order_digest
from headrace.indexer.time_order import FixTime
from headrace.schemas.errors import SourceError, describe
from headrace.schemas.grid import ChunkGrid
from headrace.schemas.variables import DecodeRule
from headrace.store import StoredArray

SCAN_VERSION = 1
"""Raised whenever the same unit would give another result."""

MIN_BIN_STEPS = 4096
TASK_NBYTES = 32 << 20
TASK_UNITS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanUnit:
    """A locator of one piece of work; crosses processes.

    Parameters
    ----------
    key
        Digest of all the result depends on.
    uri, array
        Where the values lie.
    metadata
        Digest of the array's metadata when the scan was planned.
    objects
        Digest of size and time of the stored objects when the scan was planned.
    basin_chunk, time_chunks
        Stored objects: one basin chunk, a half-open range of time chunks.
    rows, steps
        Their extent in store rows and steps, half-open, clipped to the array.
    cuts
        Steps that split the moments, first and last step included.
    rule
        How raw values decode.
    area
        float64 bytes, one area per row, with ``per_area``; empty otherwise.
    nbytes
        Raw bytes once decoded.
    stored_nbytes
        Bytes of its largest stored object.
    fix_time, order
        How the time axis was mended, and the digest of the outcome; '' where steps are as stored. A unit of a mended
        axis spans all of it, because any stored step may come first.
    """

    key: str
    uri: str
    array: str
    metadata: str
    objects: str
    basin_chunk: int
    time_chunks: tuple[int, int]
    rows: tuple[int, int]
    steps: tuple[int, int]
    cuts: tuple[int, ...]
    rule: DecodeRule
    area: bytes
    nbytes: int
    stored_nbytes: int
    fix_time: FixTime = "none"
    order: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVariable:
    """Units of one variable of one data set, in order of basin chunk, then time."""

    dataset_id: str
    variable: str
    units: tuple[ScanUnit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentZeros:
    """Stored objects of a variable that are not there although their fill value is 0."""

    dataset_id: str
    variable: str
    role: str
    num_absent: int
    num_chunks: int
    first_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """Everything to scan.

    Parameters
    ----------
    variables
        Sorted by data set and variable.
    bundles
        Units grouped for one task and one part file each; a unit that two variables share occurs once.
    absent
        Absent chunks with fill 0, for the report and the policy ``error``.
    """

    variables: tuple[PlannedVariable, ...]
    bundles: tuple[tuple[ScanUnit, ...], ...]
    absent: tuple[AbsentZeros, ...]

    @property
    def num_units(self) -> int:
        """Different units."""
        return sum(len(bundle) for bundle in self.bundles)


def plan_scan(inventory: Inventory) -> ScanPlan:
    """Cut the inventory into units; looks at every stored object's size and time, reads none."""
    variables, bundles, absent = [], [], []
    seen: set[str] = set()
    for dataset in inventory.datasets:
        fresh: list[ScanUnit] = []
        for variable in dataset.series():
            assert variable.stored is not None
            units, zeros = _units_of(dataset, variable, variable.stored)
            variables.append(PlannedVariable(dataset_id=dataset.dataset_id, variable=variable.name, units=tuple(units)))
            absent += zeros
            fresh += [u for u in units if u.key not in seen]
            seen.update(u.key for u in units)
        bundles += bundle({u.key: u for u in fresh}.values())
        for variable in dataset.of_role("static"):
            assert variable.stored is not None
            num_chunks = variable.stored.grid.basin.num_chunks
            lacking = [(i, 0) for i in range(num_chunks) if variable.stored.stat(i, 0) is None]
            absent += _absent_zeros(dataset.dataset_id, variable, variable.stored, lacking, num_chunks)
    return ScanPlan(variables=tuple(variables), bundles=tuple(bundles), absent=tuple(absent))


def bundle(units: Iterable[ScanUnit]) -> list[tuple[ScanUnit, ...]]:
    """Group consecutive units until they decode to ``TASK_NBYTES`` or number ``TASK_UNITS``."""
    bundles: list[tuple[ScanUnit, ...]] = []
    open_bundle: list[ScanUnit] = []
    nbytes = 0
    for unit in units:
        if open_bundle and (nbytes + unit.nbytes > TASK_NBYTES or len(open_bundle) == TASK_UNITS):
            bundles.append(tuple(open_bundle))
            open_bundle, nbytes = [], 0
        open_bundle.append(unit)
        nbytes += unit.nbytes
    return [*bundles, tuple(open_bundle)] if open_bundle else bundles


def time_bins(grid: ChunkGrid) -> list[tuple[int, int]]:
    """Cut the time chunks into bins of whole chunks with at least ``MIN_BIN_STEPS`` steps, the last one excepted."""
    per_bin = -(-MIN_BIN_STEPS // grid.time.chunk_size)
    edges = [*range(0, grid.time.num_chunks, per_bin), grid.time.num_chunks]
    return list(pairwise(edges))


def cut_edges(dataset: DatasetFacts) -> list[int]:
    """Return the steps at which moments of this data set are cut: edges of periods and segments, ascending."""
    edges = {s.start for s in dataset.axis.segments}
    for period in dataset.periods.values():
        edges |= {period.start, period.stop}
    return sorted(edges)


def _units_of(
    dataset: DatasetFacts, variable: VariableFacts, stored: StoredArray
) -> tuple[list[ScanUnit], list[AbsentZeros]]:
    grid, edges = stored.grid, cut_edges(dataset)
    layout, metadata, rule = layout_digest(stored), metadata_digest(stored), variable.rule.digest()
    itemsize, order = stored.dtype.itemsize, order_digest(dataset.time_order)
    units: list[ScanUnit] = []
    lacking: list[tuple[int, int]] = []
    num_chunks = 0
    basin_chunks = sorted({row // grid.basin.chunk_size for row in dataset.basins.rows})
    for basin_chunk in basin_chunks:
        rows = grid.basin.bounds(basin_chunk)
        area = (
            b"" if variable.area is None else np.ascontiguousarray(variable.area[slice(*rows)], dtype="<f8").tobytes()
        )
        for first, stop in time_bins(grid) if not order else [(0, grid.time.num_chunks)]:
            stored_steps = (grid.time.bounds(first)[0], grid.time.bounds(stop - 1)[1])
            steps = stored_steps if not order else (0, dataset.axis.num_steps)
            stats = [stored.stat(basin_chunk, t) for t in range(first, stop)]
            num_chunks += len(stats)
            lacking += [(basin_chunk, first + i) for i, stat in enumerate(stats) if stat is None]
            objects = objects_digest(stats)
            cuts = (steps[0], *(e for e in edges if steps[0] < e < steps[1]), steps[1])
            place = (stored.uri, stored.name, layout, basin_chunk, first, stop, rows, steps)
            meaning = (rule, area.hex(), cuts, SCAN_VERSION, *([order] if order else []))
            units.append(
                ScanUnit(
                    key=digest(place, objects, meaning),
                    uri=stored.uri,
                    array=stored.name,
                    metadata=metadata,
                    objects=objects,
                    basin_chunk=basin_chunk,
                    time_chunks=(first, stop),
                    rows=rows,
                    steps=steps,
                    cuts=cuts,
                    rule=variable.rule,
                    area=area,
                    nbytes=(rows[1] - rows[0]) * (stored_steps[1] - stored_steps[0]) * itemsize,
                    stored_nbytes=max((stat.nbytes for stat in stats if stat is not None), default=0),
                    fix_time=dataset.config.fix_time if order else "none",
                    order=order,
                )
            )
    return units, _absent_zeros(dataset.dataset_id, variable, stored, lacking, num_chunks)


def _absent_zeros(
    dataset_id: str, variable: VariableFacts, stored: StoredArray, lacking: Sequence[tuple[int, int]], num_chunks: int
) -> list[AbsentZeros]:
    if not lacking or not absent_is_zero(stored):
        return []
    return [
        AbsentZeros(
            dataset_id=dataset_id,
            variable=variable.name,
            role=variable.role,
            num_absent=len(lacking),
            num_chunks=num_chunks,
            first_key=stored.object_key(*lacking[0]),
        )
    ]


def refuse_absent(plan: ScanPlan, policy: AbsentPolicy) -> None:
    """Raise if there are absent chunks with fill value 0 and the policy is ``error``."""
    if policy != "error" or not plan.absent:
        return
    listed = "; ".join(
        f"{a.dataset_id}, {a.variable}: {a.num_absent} of {a.num_chunks}, first {a.first_key}" for a in plan.absent
    )
    raise SourceError(
        describe(
            "chunks are not stored and their fill value is 0",
            where=listed,
            expected="every chunk stored (missing.absent_chunk: error)",
            got="0 or missing, which the store cannot tell apart",
            fix="set missing.absent_chunk: valid_zero or missing",
        )
    )
