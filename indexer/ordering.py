"""Sort a table by its key, unless it is sorted: most tables are made in order, and sorting by text takes far longer."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def in_order(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the rows sorted by the columns of the key; keys are unique."""
    if is_sorted(table, key):
        return table
    return table.sort_by([(column, "ascending") for column in key]).combine_chunks()


def is_sorted(table: pa.Table, key: Sequence[str]) -> bool:
    """Return whether no row comes before the one above it."""
    equal: NDArray[np.bool_] = np.ones(max(table.num_rows - 1, 0), dtype=np.bool_)
    for column in key:
        rank = _ranks(table[column])
        if (equal & (rank[1:] < rank[:-1])).any():
            return False
        equal &= rank[1:] == rank[:-1]
    return True


def _ranks(column: pa.ChunkedArray) -> NDArray[np.integer]:
    """Return numbers that are ordered as the values are."""
    if not pa.types.is_string(column.type):
        return np.asarray(column.to_numpy())
    coded = column.combine_chunks().dictionary_encode() if column.num_chunks else pa.array([], pa.string())
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    if len(coded) == 0:
        return np.zeros(0, dtype=np.int64)
    place = np.argsort(pc.array_sort_indices(coded.dictionary).to_numpy())
    return np.asarray(place[coded.indices.to_numpy()])
