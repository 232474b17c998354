"""Which stored chunks are decoded together, so that each is decoded once.

Variables with the same chunk grid share their read groups; a group is one basin chunk × a few time chunks of them.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headrace.loader.amplification import ReadFrom
from headrace.loader.layout import Layout
from headrace.loader.placement import Placement
from headrace.loader.sources import DatasetSource, SourceVariable
from headrace.objects.zarr_store import ask_ahead
from headrace.open_store import open_group
from headrace.schemas.errors import StaleIndexError, describe
from headrace.schemas.grid import AxisGrid
from headrace.store import BASIN_DIM, TIME_DIM, StoredArray, open_array

_GROUP_NBYTES = 32 * 2**20
"""Raw bytes that a group aims at: enough to hide per-call cost. Readers hold less where many read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGroup:
    """Chunks decoded together.

    Parameters
    ----------
    dataset
        Position among the loader's data sets.
    variables
        Positions among the data set's present variables.
    basin_start, basin_stop
        Store rows.
    step_start, step_stop
        Stored steps, from chunk edge to chunk edge.
    slots
        int64, slots whose rows the group fills, ascending.
    """

    dataset: int
    variables: tuple[int, ...]
    basin_start: int
    basin_stop: int
    step_start: int
    step_stop: int
    slots: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDataset:
    """A data set with its arrays open.

    Parameters
    ----------
    source
        The data set.
    variables, arrays
        Those the store holds, inputs first.
    columns
        Column of each variable among the inputs or among the targets.
    """

    source: DatasetSource
    variables: tuple[SourceVariable, ...]
    arrays: tuple[StoredArray, ...]
    columns: tuple[int, ...]


def open_dataset(source: DatasetSource) -> OpenDataset:
    """Open the arrays a data set is read from.

    Raises
    ------
    SourceError
        The store is gone.
    StaleIndexError
        An array is gone.
    """
    group = open_group(source.uri, source.storage)
    variables = tuple(source.present())
    ask_ahead(group, {v.array for v in variables})
    arrays = []
    for variable in variables:
        array = open_array(group, source.uri, variable.array, dims=(BASIN_DIM, TIME_DIM))
        if array is None:
            raise StaleIndexError(
                describe(
                    "array is gone since the index was built",
                    where=source.uri,
                    expected=variable.array,
                    got="no such array",
                    fix="build the index again",
                )
            )
        arrays.append(array)
    places = {("input", v.name): i for i, v in enumerate(source.inputs)} | {
        ("target", v.name): i for i, v in enumerate(source.targets)
    }
    columns = tuple(places[v.role, v.name] for v in variables)
    return OpenDataset(source=source, variables=variables, arrays=tuple(arrays), columns=columns)


def slot_columns(datasets: Sequence[ReadFrom], layout: Layout) -> NDArray[np.int64]:
    """Return which basin chunk of which data set each slot is read from: ``data set << 32 | chunk``, int64 [slots].

    With several grids the one with the longest basin chunks counts.
    """
    column = np.zeros(layout.num_slots, dtype=np.int64)
    for number, opened in enumerate(datasets):
        longest = max((a.grid.basin.chunk_size for a in opened.arrays), default=1)
        own = layout.dataset == number
        rows = opened.source.store_rows[layout.basin[own]]
        column[own] = (number << 32) + rows // longest
    return column


def plan_reads(datasets: Sequence[OpenDataset], layout: Layout, most_nbytes: int = _GROUP_NBYTES) -> list[ReadGroup]:
    """Cover every slot with read groups; each stored chunk lies in exactly one.

    The cut depends on the stores and the layout alone, so that processes with other budgets and thread counts agree.

    Parameters
    ----------
    datasets
        Open data sets.
    layout
        Rows to be filled.
    most_nbytes
        Raw bytes a group aims at; a single chunk may exceed it.
    """
    groups: list[ReadGroup] = []
    for number, opened in enumerate(datasets):
        slots = np.flatnonzero(layout.dataset == number)
        if slots.size == 0:
            continue
        store_rows = opened.source.store_rows[layout.basin[slots]]
        by_grid: dict[tuple[AxisGrid, AxisGrid], list[int]] = defaultdict(list)
        for v, array in enumerate(opened.arrays):
            by_grid[array.grid.basin, array.grid.time].append(v)
        for (basin_grid, time_grid), variables in by_grid.items():
            chunk = store_rows // basin_grid.chunk_size
            for basin_chunk in np.unique(chunk):
                inside = slots[chunk == basin_chunk]
                bounds = basin_grid.bounds(int(basin_chunk))
                first, last = int(layout.first[inside].min()), int(layout.last[inside].max())
                column = ReadGroup(
                    dataset=number,
                    variables=tuple(variables),
                    basin_start=bounds[0],
                    basin_stop=bounds[1],
                    step_start=0,
                    step_stop=time_grid.extent,
                    slots=inside,
                )
                groups += cut_group(column, opened, _stored_chunks(opened, time_grid, first, last), most_nbytes)
    return groups


def _stored_chunks(opened: OpenDataset, time_grid: AxisGrid, first: int, last: int) -> NDArray[np.int64]:
    """Return the time chunks from the first to the last that holds any of the steps [first, last)."""
    order = opened.source.time_order
    low, high = (first, last - 1) if order is None else (int(order[first:last].min()), int(order[first:last].max()))
    return np.arange(time_grid.chunk_of(low), time_grid.chunk_of(high) + 1)


def needed_chunks(group: ReadGroup, opened: OpenDataset, where: Placement) -> NDArray[np.int64]:
    """Return the time chunks of a group that hold a step to be placed, int64, ascending."""
    time_grid = opened.arrays[group.variables[0]].grid.time
    chunks = time_grid.chunks_of(group.step_start, group.step_stop)
    stretches, _ = where.of_slots(group.slots)
    first, last = where.first[stretches], where.last[stretches]
    order = opened.source.time_order
    if order is not None:
        steps = np.unique(np.concatenate([order[a:b] for a, b in zip(first, last, strict=True)] or [order[:0]]))
        found = np.unique(steps // time_grid.chunk_size)
        return found[(found >= chunks.start) & (found < chunks.stop)]
    first, last = np.maximum(first, group.step_start), np.minimum(last, group.step_stop)
    inside = first < last
    covered = np.zeros(len(chunks) + 1, dtype=np.int64)
    np.add.at(covered, first[inside] // time_grid.chunk_size - chunks.start, 1)
    np.add.at(covered, (last[inside] - 1) // time_grid.chunk_size - chunks.start + 1, -1)
    return np.flatnonzero(np.cumsum(covered[:-1])) + chunks.start


def cut_group(
    group: ReadGroup,
    opened: OpenDataset,
    time_chunks: NDArray[np.int64],
    most_nbytes: int,
    enough_nbytes: int | None = None,
) -> list[ReadGroup]:
    """Cut some time chunks of a group along time, and along variables where one time chunk of all is too much.

    Parameters
    ----------
    group
        All its variables have one chunk grid.
    opened
        The data set.
    time_chunks
        Ascending numbers of the chunks wanted.
    most_nbytes
        Raw bytes a piece aims at; a single chunk may exceed it.
    enough_nbytes
        Raw bytes from which on a piece takes no further time chunk; None: ``most_nbytes``.
    """
    variables = group.variables
    time_grid = opened.arrays[variables[0]].grid.time
    itemsize = max(opened.arrays[v].dtype.itemsize for v in variables)
    chunk_nbytes = (group.basin_stop - group.basin_start) * min(time_grid.chunk_size, time_grid.extent) * itemsize
    together = max(min(most_nbytes // chunk_nbytes, len(variables)), 1)
    most_chunks = max((enough_nbytes or most_nbytes) // (chunk_nbytes * together), 1)
    gaps = np.flatnonzero(np.diff(time_chunks) != 1) + 1
    return [
        replace(
            group,
            variables=variables[v : v + together],
            step_start=time_grid.bounds(int(run[first]))[0],
            step_stop=time_grid.bounds(int(run[min(first + most_chunks, run.size) - 1]))[1],
        )
        for run in np.split(time_chunks, gaps)
        for first in range(0, run.size, most_chunks)
        for v in range(0, len(variables), together)
    ]
