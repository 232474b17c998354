"""What decides the bytes of decoded rows, as a key: equal keys mean equal rows, whatever budget, seed or threads."""

import hashlib
import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headrace.loader.layout import Layout
from headrace.loader.normalize import Scaling
from headrace.loader.read_plan import OpenDataset, ReadGroup
from headrace.loader.rows_file import FORMAT
from headrace.schemas.grid import ChunkGrid


def rows_key(
    datasets: Sequence[OpenDataset],
    layout: Layout,
    groups: Sequence[ReadGroup],
    *,
    x_scaling: Sequence[Scaling],
    y_scaling: Sequence[Scaling],
    with_masks: bool,
) -> str:
    """Return 32 hex digits over stores, chunks as scanned, decode rules, scales, columns and where rows lie.

    Parameters
    ----------
    datasets
        Open data sets.
    layout, groups
        Which rows there are, and which stored chunks fill them.
    x_scaling, y_scaling
        Per data set, over inputs and over targets.
    with_masks
        Whether a mask column follows for every input.
    """
    digest = hashlib.sha256()

    def add(*facts: object) -> None:
        for fact in facts:
            text = (
                fact.tobytes()
                if isinstance(fact, np.ndarray)
                else json.dumps(fact, sort_keys=True, default=str).encode()
            )
            digest.update(f"{len(text)}:".encode() + text)

    add(FORMAT, with_masks, layout.dataset, layout.basin, layout.first, layout.last, layout.base)
    for number, opened in enumerate(datasets):
        source = opened.source
        basins = layout.basin[layout.dataset == number]
        add(source.uri, source.store_rows[basins], source.time_order)
        add([(v.name, v.rule and v.rule.digest(), v.fill_value) for v in (*source.inputs, *source.targets)])
        add({name: area[basins].tolist() for name, area in source.areas.items()})
        for scaling in (x_scaling[number], y_scaling[number]):
            add(scaling.mean[basins], scaling.std[basins])
        for array in opened.arrays:
            described = array.array.metadata.to_dict()
            add(array.name, array.dims, {k: v for k, v in described.items() if k != "attributes"})
    add([(g.dataset, g.variables, g.basin_start, g.basin_stop, g.step_start, g.step_stop) for g in groups])
    for number, opened in enumerate(datasets):
        own = [group for group in groups if group.dataset == number]
        for v, variable in enumerate(opened.variables):
            facts, grid = opened.source.chunks[variable.name], opened.arrays[v].grid
            keys = [_chunks_of(group, grid) for group in own if v in group.variables]
            rows = facts.rows_of(np.concatenate([np.zeros(0, np.int64), *keys]))
            known = rows[rows >= 0]
            for found in (rows, facts.state[known], facts.fingerprint[known]):
                add(found.dtype.str, found)
    return digest.hexdigest()[:32]


def _chunks_of(group: ReadGroup, grid: ChunkGrid) -> NDArray[np.int64]:
    """Return the keys of a group's chunks, as table ``chunks`` has them."""
    time_chunks = np.array(grid.time.chunks_of(group.step_start, group.step_stop), dtype=np.int64)
    return grid.basin.chunk_of(group.basin_start) << 32 | time_chunks
