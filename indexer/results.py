"""Parts back to facts per variable: store rows become basins of the data set, units become one sequence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.indexer.facts import DatasetFacts
from headrace.indexer.parts import read_units
from headrace.indexer.runs import Runs, stitch
from headrace.indexer.units import PlannedVariable
from headrace.schemas.intervals import Intervals
from headrace.schemas.moments import Moments


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesResult:
    """Scan result of one variable of one data set; rows are configured basins.

    Parameters
    ----------
    runs
        Stitched over unit edges; ``row`` is the basin.
    basin, start, stop
        int32 [M], which bin each row of ``moments`` covers, sorted by (basin, start).
    moments
        [M].
    chunks
        Columns of the table ``chunks`` without data set and variable, in order of basin chunk and time chunk.
    """

    runs: Runs
    basin: NDArray[np.int32]
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    moments: Moments
    chunks: pa.StructArray

    def intervals(self) -> Intervals:
        """Return the runs as the window rule takes them."""
        return Intervals(
            row=self.runs.row.astype(np.int64),
            start=self.runs.start.astype(np.int64),
            stop=self.runs.stop.astype(np.int64),
        )


class ScanResults:
    """The rows of all parts of a build, by unit key."""

    def __init__(self, parts: Path, names: Sequence[str]) -> None:
        self._rows = read_units(parts, names).combine_chunks()
        self._place = {key: i for i, key in enumerate(self._rows["key"].to_pylist())}

    def of(self, planned: PlannedVariable, dataset: DatasetFacts) -> SeriesResult:
        """Return what the units of a variable say about the configured basins."""
        places = pa.array([self._place[unit.key] for unit in planned.units])
        rows = self._rows.take(places)
        basin_of = np.full(dataset.num_store_rows, -1, dtype=np.int32)
        basin_of[list(dataset.basins.rows)] = np.arange(len(dataset.basins.ids), dtype=np.int32)
        runs = _columns(rows["runs"], basin_of)
        order = np.lexsort((runs["start"], runs["row"]))
        found = Runs(row=runs["row"][order], start=runs["start"][order], stop=runs["stop"][order])
        moments = _columns(rows["moments"], basin_of)
        order = np.lexsort((moments["start"], moments["row"]))
        moments = {name: column[order] for name, column in moments.items()}
        return SeriesResult(
            runs=stitch(found),
            basin=moments["row"],
            start=moments["start"],
            stop=moments["stop"],
            moments=Moments(
                count=moments["count"], mean=moments["mean"], m2=moments["m2"], low=moments["min"], high=moments["max"]
            ),
            chunks=_flat(rows["chunks"]),
        )


def _flat(column: pa.ChunkedArray) -> pa.StructArray:
    chunks = column.combine_chunks()
    joined = chunks if isinstance(chunks, pa.Array) else pa.concat_arrays(chunks.chunks)
    return joined.flatten()


def _columns(column: pa.ChunkedArray, basin_of: NDArray[np.int32]) -> Mapping[str, NDArray[Any]]:
    """Return the fields of a list<struct> column for configured basins only; ``row`` becomes the basin."""
    flat = _flat(column)
    fields = {
        flat.type.field(i).name: flat.field(i).to_numpy(zero_copy_only=False) for i in range(flat.type.num_fields)
    }
    basin = basin_of[fields["row"]]
    keep = basin >= 0
    return {**{name: values[keep] for name, values in fields.items()}, "row": basin[keep]}
