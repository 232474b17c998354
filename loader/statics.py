"""Static attributes as one normalised row per basin.

Legend: Vs statics (masks after them under ``fill_and_mask``).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headrace.loader.catalog import Index
from headrace.loader.columns import numbers, texts
from headrace.loader.normalize import resolve_scaling
from headrace.loader.sources import DatasetSource
from headrace.schemas.config import NormalizationConfig
from headrace.schemas.moments import Moments


def load_statics(
    index: Index,
    sources: Sequence[DatasetSource],
    served: Sequence[NDArray[np.bool_]],
    names: Sequence[str],
    normalization: NormalizationConfig,
    *,
    with_masks: bool,
) -> list[NDArray[np.float32]]:
    """Return normalised statics per data set.

    Statistics are over the served training basins of all data sets together, whatever the scope; a missing value
    becomes the mean (0 after normalisation), an attribute that a data set lacks its fill value; both are 1 in the mask.

    Returns
    -------
    list of NDArray[np.float32]
        [num_basins, Vs] per data set.
    """
    raw = [_values(index, source, names) for source in sources]
    moments = [[Moments.of(values[:, v : v + 1]) for v in range(len(names))] for values in raw]
    scope = normalization.model_copy(update={"scope": "global"})
    scalings = resolve_scaling(moments, served, names, scope, [s.dataset_id for s in sources], index.warned)
    out = []
    for source, values, scaling in zip(sources, raw, scalings, strict=True):
        scaled = ((values - scaling.mean) / scaling.std).astype(np.float32)
        missing = np.isnan(scaled)
        columns = [np.where(missing, _fill_values(index, source, names), scaled)]
        if with_masks:
            columns.append(missing.astype(np.float32))
        out.append(np.ascontiguousarray(np.concatenate(columns, axis=1)))
    return out


def _fill_values(index: Index, source: DatasetSource, names: Sequence[str]) -> NDArray[np.float32]:
    """Return what stands for a missing value, normalised, float32 [Vs]: 0, or the fill value of an absent variable."""
    lacking = {
        r["variable"]: r["model_fill_value"]
        for r in index.fetch("variables").to_pylist()
        if (r["dataset_id"], r["role"]) == (source.dataset_id, "static") and not r["present"]
    }
    return np.array([lacking.get(name, 0.0) for name in names], dtype=np.float32)


def _values(index: Index, source: DatasetSource, names: Sequence[str]) -> NDArray[np.float64]:
    table = index.fetch("statics", dataset_id=source.dataset_id)
    stored, of_row = texts(table, "variable")
    basin, value = numbers(table, "basin"), numbers(table, "value")
    values = np.full((source.num_basins, len(names)), np.nan)
    for v, name in enumerate(names):
        if name in stored:
            rows = of_row == stored.index(name)
            values[basin[rows], v] = value[rows]
    return values
