"""What a loader has read from its stores, against what it needs of them."""

from collections.abc import Sequence
from functools import cached_property

from headrace.loader.placement import Placement
from headrace.loader.raw import RawReader
from headrace.loader.read_plan import OpenDataset, ReadGroup, needed_chunks


class ReadCounts:
    """Counts that outlive the reader threads.

    Parameters
    ----------
    raw
        Counts as it reads.
    datasets, groups
        What is read, and where from.
    where
        The steps that are needed.
    """

    def __init__(
        self, raw: RawReader, datasets: Sequence[OpenDataset], groups: Sequence[ReadGroup], where: Placement
    ) -> None:
        self._raw, self._datasets, self._groups, self._where = raw, datasets, groups, where

    @property
    def chunks(self) -> int:
        """Store chunks read so far."""
        return self._raw.chunks_read

    @property
    def nbytes(self) -> int:
        """Stored bytes read so far."""
        return self._raw.bytes_read

    @cached_property
    def chunks_needed(self) -> int:
        """Distinct store chunks that hold a step of the split; those that were never written do not count."""
        total = 0
        for group in self._groups:
            opened = self._datasets[group.dataset]
            time_chunks = needed_chunks(group, opened, self._where)
            for v in group.variables:
                facts = opened.source.chunks[opened.variables[v].name]
                basin_chunk = opened.arrays[v].grid.basin.chunk_of(group.basin_start)
                total += sum(bool((facts.look_up(basin_chunk, c) or ("", ""))[1]) for c in time_chunks.tolist())
        return total

    @property
    def amplification(self) -> float:
        """Chunks read so far over chunks needed: 1 when each was read once, 0 when all rows came from the cache."""
        return self.chunks / max(self.chunks_needed, 1)
