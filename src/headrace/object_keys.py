"""Keys of an array's stored objects, written from their two numbers; Zarr's own way costs three microseconds a key."""

from collections.abc import Callable
from typing import Any, Final

import zarr

from headrace.schemas.grid import ChunkGrid

_EXAMPLES: Final = ((7_340_033, 5_767_169), (0, 10), (1, 0))
"""Pairs of basin chunk and time chunk; the first two numbers are found again in the key."""


def key_writer(array: "zarr.Array[Any]", name: str, grid: ChunkGrid) -> Callable[[int, int], str]:
    """Return what gives the key of a stored object, relative to the store, for its basin chunk and its time chunk.

    Parameters
    ----------
    array, name
        The open array, and what it is called in the store.
    grid
        Its axes.
    """

    def written(basin_chunk: int, time_chunk: int) -> str:
        return f"{name}/{array.metadata.encode_chunk_key(grid.object_index(basin_chunk, time_chunk))}"

    basin, time = map(str, _EXAMPLES[0])
    example = written(*_EXAMPLES[0])
    if not grid.has_time or example.count(basin) != 1 or example.count(time) != 1:
        return written
    first, second = (time, basin) if grid.time_first else (basin, time)
    before, _, rest = example.partition(first)
    between, _, after = rest.partition(second)

    def joined(basin_chunk: int, time_chunk: int) -> str:
        if grid.time_first:
            return f"{before}{time_chunk}{between}{basin_chunk}{after}"
        return f"{before}{basin_chunk}{between}{time_chunk}{after}"

    return joined if all(joined(*pair) == written(*pair) for pair in _EXAMPLES) else written
