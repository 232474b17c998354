"""What decides the bytes of decoded rows, as a key: equal keys mean equal rows, whatever budget, seed or threads."""

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from headrace.loader.layout import Layout
from headrace.loader.normalize import Scaling
from headrace.loader.read_plan import OpenDataset, ReadGroup
from headrace.loader.rows_file import FORMAT


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
    for group in groups:
        opened = datasets[group.dataset]
        add(group.dataset, group.variables, group.basin_start, group.basin_stop, group.step_start, group.step_stop)
        for v in group.variables:
            grid, facts = opened.arrays[v].grid, opened.source.chunks[opened.variables[v].name]
            basin_chunk = grid.basin.chunk_of(group.basin_start)
            chunks = grid.time.chunks_of(group.step_start, group.step_stop)
            add([facts.look_up(basin_chunk, chunk) for chunk in chunks])
    return digest.hexdigest()[:32]
