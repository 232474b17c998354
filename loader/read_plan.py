"""Which stored chunks are decoded together, so that each is decoded once.

Variables with the same chunk grid share their read groups; a group is one basin chunk × a few time chunks of them.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout
from headrace.loader.sources import DatasetSource, SourceVariable
from headrace.schemas.errors import StaleIndexError, describe
from headrace.schemas.grid import AxisGrid
from headrace.store import BASIN_DIM, TIME_DIM, StoredArray, open_array, open_group

_GROUP_NBYTES = 32 * 2**20
"""Raw bytes that a group aims at: enough to hide per-call cost, little enough for several readers."""


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
        Stored steps, from chunk edge to chunk edge; all of them where the time axis was mended.
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
    group = open_group(source.uri)
    variables = tuple(source.present())
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


def slot_columns(datasets: Sequence[OpenDataset], layout: Layout) -> NDArray[np.int64]:
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
                groups += _groups(number, opened, variables, bounds, time_grid, inside, layout, most_nbytes)
    return groups


def _groups(
    number: int,
    opened: OpenDataset,
    variables: list[int],
    bounds: tuple[int, int],
    time_grid: AxisGrid,
    slots: NDArray[np.int64],
    layout: Layout,
    most_nbytes: int,
) -> list[ReadGroup]:
    """Cut one basin chunk into groups along time, and along variables where one time chunk of all is too much."""
    chunk_nbytes = (
        (bounds[1] - bounds[0]) * time_grid.chunk_size * max(opened.arrays[v].dtype.itemsize for v in variables)
    )
    together = max(min(most_nbytes // chunk_nbytes, len(variables)), 1)
    chunks = max(most_nbytes // (chunk_nbytes * together), 1)
    needed = time_grid.chunks_of(int(layout.first[slots].min()), int(layout.last[slots].max()))
    if opened.source.time_order is not None:  # any stored step may be any step: all of them are read together
        chunks, needed = time_grid.num_chunks, range(time_grid.num_chunks)
    return [
        ReadGroup(
            dataset=number,
            variables=tuple(variables[v : v + together]),
            basin_start=bounds[0],
            basin_stop=bounds[1],
            step_start=time_grid.bounds(first)[0],
            step_stop=time_grid.bounds(min(first + chunks, needed.stop) - 1)[1],
            slots=slots,
        )
        for first in range(needed.start, needed.stop, chunks)
        for v in range(0, len(variables), together)
    ]
