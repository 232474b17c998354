"""What the chunk shape of a store costs, and what to do about it, in plain words.

Pure arithmetic on the facts of the table ``chunks``. Bytes decoded are those of float32, as the loader holds them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.report.numbers import count, plural, size

TINY_NBYTES, MANY_OBJECTS = 1 << 20, 10_000
"""From so many objects of fewer decoded bytes on, opening them costs more than reading them."""
LARGE_NBYTES = 128 << 20
"""A reader thread holds a whole chunk while it decodes it."""
COLUMN_NBYTES = 2 << 30
"""Decoded bytes of one group of basins over the whole record, from which on a usual memory budget does not hold it."""
GOOD_NBYTES = 8 << 20
"""Decoded bytes of a chunk that is neither dear to open nor to hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCost:
    """One array and how it is cut.

    Parameters
    ----------
    dataset_id, variable, array
        Which one.
    num_basins, num_steps
        Extent of the record.
    chunk_basins, chunk_steps
        Extent of the largest stored object.
    objects, absent, only_missing, unreadable
        Stored objects, and those without data.
    stored_nbytes, decoded_nbytes
        Of all objects.
    sharded
        Whether objects are shards with smaller chunks inside.
    """

    dataset_id: str
    variable: str
    array: str
    num_basins: int
    num_steps: int
    chunk_basins: int
    chunk_steps: int
    objects: int
    absent: int
    only_missing: int
    unreadable: int
    stored_nbytes: int
    decoded_nbytes: int
    sharded: bool

    @property
    def chunk_nbytes(self) -> int:
        """Decoded bytes of the largest object."""
        return 4 * self.chunk_basins * self.chunk_steps

    @property
    def column_nbytes(self) -> int:
        """Decoded bytes of the largest group of basins over the whole record."""
        return 4 * self.chunk_basins * self.num_steps

    def values_per_value(self, window_length: int) -> float:
        """Return values decoded per value used, if a window of one basin were read alone, on average over its place."""
        chunks = 1 + (window_length - 1) / self.chunk_steps
        return self.chunk_basins * min(chunks * self.chunk_steps, self.num_steps) / window_length

    def better_shape(self) -> tuple[int, int]:
        """Return (basins, steps) of a chunk of some :data:`GOOD_NBYTES` that holds whole records where it can."""
        values = GOOD_NBYTES // 4
        if self.num_steps <= values:
            return min(self.num_basins, max(1, values // self.num_steps)), self.num_steps
        return 1, math.ceil(self.num_steps / math.ceil(self.num_steps / values))


@dataclass(frozen=True, slots=True)
class Advice:
    """A headline and what follows from it; ``change`` says whether there is something to do."""

    headline: str
    text: str
    change: bool


def advise(costs: Sequence[ChunkCost]) -> list[Advice]:
    """Return advice on one data set, what matters most first; never empty.

    Parameters
    ----------
    costs
        Its arrays over time, at least one.
    """
    found = [*_tiny(costs), *_large(costs), *_column(costs), *_grids(costs)]
    if found:
        return found
    largest = max(costs, key=lambda c: c.chunk_nbytes)
    objects = sum(c.objects for c in costs)
    return [
        Advice(
            "Nothing to change",
            f"{plural(objects, 'object')} of up to {size(largest.chunk_nbytes)} decoded: few enough to open, small "
            "enough to hold, and each is read once per epoch.",
            change=False,
        )
    ]


def _names(costs: Sequence[ChunkCost]) -> str:
    listed = ", ".join(c.variable for c in costs[:4])
    return f"{listed} and {len(costs) - 4} more" if len(costs) > 4 else listed


def _shape(basins: int, steps: int) -> str:
    return f"{plural(basins, 'basin')} × {plural(steps, 'step')}"


def _tiny(costs: Sequence[ChunkCost]) -> list[Advice]:
    tiny = [c for c in costs if c.objects >= MANY_OBJECTS and c.chunk_nbytes < TINY_NBYTES]
    if not tiny:
        return []
    worst = max(tiny, key=lambda c: c.objects)
    basins, steps = worst.better_shape()
    left = math.ceil(worst.num_basins / basins) * math.ceil(worst.num_steps / steps)
    return [
        Advice(
            "Many small chunks",
            f"{_names(tiny)}: {count(worst.objects)} objects of {size(worst.chunk_nbytes)} decoded each, and opening "
            f"one costs more than reading it. Written as chunks of {_shape(basins, steps)} "
            f"({size(4 * basins * steps)} decoded) there would be {count(left)}. In Zarr format 3, shards of that size "
            "do as well.",
            change=True,
        )
    ]


def _large(costs: Sequence[ChunkCost]) -> list[Advice]:
    large = [c for c in costs if c.chunk_nbytes > LARGE_NBYTES]
    if not large:
        return []
    worst = max(large, key=lambda c: c.chunk_nbytes)
    basins, steps = worst.better_shape()
    held = "A shard is read whole" if worst.sharded else "A reader holds a whole chunk while it decodes it"
    return [
        Advice(
            "Large chunks",
            f"{_names(large)}: up to {size(worst.chunk_nbytes)} decoded. {held}, so every reader thread needs that "
            f"much beside the memory budget, and few chunks can be read at once. Chunks of {_shape(basins, steps)} "
            f"({size(4 * basins * steps)}) read as fast; until then set loader.num_workers to 2 or less where memory "
            "is short.",
            change=True,
        )
    ]


def _column(costs: Sequence[ChunkCost]) -> list[Advice]:
    total = sum(c.column_nbytes for c in costs)
    widest = max(costs, key=lambda c: c.chunk_basins)
    if total <= COLUMN_NBYTES or widest.chunk_basins == 1:
        return []
    fewer = max(1, int(widest.chunk_basins * COLUMN_NBYTES / total / 4))
    return [
        Advice(
            "Chunks hold many basins",
            f"A chunk holds {plural(widest.chunk_basins, 'basin')}, and their whole records are {size(total)} decoded. "
            "A memory budget below that makes the loader decode them in pieces and keep the rest on disk meanwhile "
            f"(loader.cache_dir). With {plural(fewer, 'basin')} a chunk it could mix basins in a quarter of "
            f"{size(COLUMN_NBYTES)}.",
            change=True,
        )
    ]


def _grids(costs: Sequence[ChunkCost]) -> list[Advice]:
    grids = {(c.chunk_basins, c.chunk_steps) for c in costs}
    if len(grids) == 1:
        return []
    listed = "; ".join(
        f"{_shape(*grid)} ({_names([c for c in costs if (c.chunk_basins, c.chunk_steps) == grid])})"
        for grid in sorted(grids)[:4]
    )
    return [
        Advice(
            "Variables are cut differently",
            f"{listed}{'; …' if len(grids) > 4 else ''}. Each is still read once, but variables of one shape are "
            "decoded together and need less memory at a time.",
            change=False,
        )
    ]
