"""Columns of Arrow tables as arrays.

Arrow's own ``to_numpy`` imports pandas where it is installed, which takes longer than most queries and stays in memory.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numbers(table: pa.Table, name: str) -> NDArray[Any]:
    """Return a column of numbers without nulls, in its own type; read-only where it is not a copy."""
    column = table.column(name)
    parts = [np.from_dlpack(chunk) for chunk in column.chunks]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, str(column.type)), *parts])


def texts(table: pa.Table, name: str) -> tuple[list[str], NDArray[np.int32]]:
    """Return the distinct texts of a column, in the order in which they occur, and which of them each row holds."""
    if table.num_rows == 0:
        return [], np.empty(0, np.int32)
    encoded = table.column(name).combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), np.from_dlpack(encoded.indices).astype(np.int32)
