"""Parts as a scan would have left them, made up from a seed: runs, moments and chunks of any number of basins."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from headrace.indexer.distribute import ScanTask
from headrace.indexer.parts import to_table, write_part
from headrace.indexer.read_unit import ChunkFacts, UnitResult
from headrace.indexer.runs import Runs
from headrace.indexer.scan import ScanResult
from headrace.indexer.units import ScanUnit
from headrace.schemas.moments import Moments


class Recorder:
    """Stands in for the scan: writes parts with runs and moments from a seed."""

    def __init__(self, holes: int) -> None:
        self._holes = holes

    def __call__(self, tasks: list[ScanTask], *_: object, **__: object) -> None:
        """Write the part of every task."""
        for task in tasks:
            write_part(Path(task.folder), to_table([self._result(unit) for unit in task.units]))

    def _result(self, unit: ScanUnit) -> UnitResult:
        rng = np.random.default_rng(int(unit.key[:8], 16))
        (first_row, last_row), (start, stop) = unit.rows, unit.steps
        rows, holes = last_row - first_row, self._holes
        edges = np.sort(rng.integers(start + 1, stop, (rows, 2 * holes)), axis=1)
        bounds = np.concatenate([np.full((rows, 1), start), edges, np.full((rows, 1), stop)], axis=1)
        begin, end = bounds[:, ::2].reshape(-1), bounds[:, 1::2].reshape(-1)
        row = np.repeat(np.arange(first_row, last_row), holes + 1)
        some = end > begin
        runs = Runs(row=row[some].astype("i4"), start=begin[some].astype("i4"), stop=end[some].astype("i4"))
        values = rng.normal(size=(rows * (len(unit.cuts) - 1), 4))
        moments = replace(Moments.of(values), count=np.full(values.shape[0], (stop - start) // 2))
        chunk = ChunkFacts(
            basin_chunk=unit.basin_chunk,
            time_chunk=unit.time_chunks[0],
            rows=unit.rows,
            steps=unit.steps,
            state="data",
            stored_nbytes=1 << 20,
            valid_count=rows * (stop - start) // 2,
            fingerprint=unit.key,
        )
        scanned = ScanResult(runs=runs, moments=moments, valid_count=np.array([chunk.valid_count]))
        return UnitResult(unit=unit, chunks=(chunk,), scanned=scanned)
