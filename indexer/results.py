"""Parts back to facts per variable: store rows become basins of the data set, units become one sequence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.indexer.facts import DatasetFacts
from headrace.indexer.parts import PART_SCHEMA, read_units
from headrace.indexer.runs import Runs, ascending, stitch
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
    """What the parts of a build hold, by unit; one part is in memory at a time.

    Parameters
    ----------
    folder
        The folder ``parts``.
    names, bundles
        Parts of this build, and the keys of the units in each, in order.
    """

    def __init__(self, folder: Path, names: Sequence[str], bundles: Sequence[Sequence[str]]) -> None:
        self._folder = folder
        self._place = {
            key: (name, row) for name, keys in zip(names, bundles, strict=True) for row, key in enumerate(keys)
        }
        self._open: tuple[str, pa.Table] = ("", PART_SCHEMA.empty_table())

    def of(self, planned: PlannedVariable, dataset: DatasetFacts) -> SeriesResult:
        """Return what the units of a variable say about the configured basins."""
        basin_of = np.full(dataset.num_store_rows, -1, dtype=np.int32)
        basin_of[list(dataset.basins.rows)] = np.arange(len(dataset.basins.ids), dtype=np.int32)
        runs, moments, chunks = [], [], []
        places = (self._place[unit.key] for unit in planned.units)
        for name, group in groupby(places, key=itemgetter(0)):
            rows = self._part(name).take(pa.array([row for _, row in group]))
            runs.append(_columns(rows["runs"], basin_of))
            moments.append(_columns(rows["moments"], basin_of))
            chunks.append(_flat(rows["chunks"]))
        found, m = _sorted(runs), _sorted(moments)
        pa.default_memory_pool().release_unused()
        return SeriesResult(
            runs=stitch(Runs(row=found["row"], start=found["start"], stop=found["stop"])),
            basin=m["row"],
            start=m["start"],
            stop=m["stop"],
            moments=Moments(count=m["count"], mean=m["mean"], m2=m["m2"], low=m["min"], high=m["max"]),
            chunks=pa.concat_arrays(chunks),
        )

    def _part(self, name: str) -> pa.Table:
        """Read a part, unless it is the one read last: variables follow each other inside a part."""
        if self._open[0] != name:
            self._open = (name, read_units(self._folder, [name]))
        return self._open[1]


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


def _sorted(parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Join columns and sort them by (row, start), which occur once each."""
    order = ascending(*(np.concatenate([p[name] for p in parts]) for name in ("row", "start")))
    return {name: np.concatenate([p[name] for p in parts])[order] for name in parts[0]}
