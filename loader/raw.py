"""Stored chunks → raw values, held to what the index says of each: a chunk that changed is never taken for the old one.

Counts what is read. Legend: S basins, T steps of a piece.
"""

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from headrace.loader.read_plan import OpenDataset, ReadGroup
from headrace.objects import ObjectStat
from headrace.objects.fetch import Fetch
from headrace.objects.zarr_store import remote_store
from headrace.schemas.errors import StaleIndexError, describe
from headrace.scratch import Lease
from headrace.store import StoredArray


class RawReader:
    """Read raw values; used by several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.chunks_read = 0
        self.bytes_read = 0

    def fetch(self, opened: OpenDataset, v: int, piece: ReadGroup) -> Fetch:
        """Begin to fetch the stored objects of one variable of a piece, where they lie in a bucket."""
        return opened.arrays[v].fetch(_rows(piece), slice(piece.step_start, piece.step_stop))

    def read(
        self, opened: OpenDataset, v: int, piece: ReadGroup, fetch: Fetch, lease: Lease | None = None
    ) -> tuple[NDArray[np.generic], list[slice]]:
        """Read one variable of a piece whose objects are being fetched; of a large chunk until the lease is given back.

        Returns
        -------
        values
            [S, T] of the stored type.
        lost
            Ranges of columns that hold nothing but missing values.

        Raises
        ------
        StaleIndexError
            A chunk is not, or while it was read no longer, what the index says.
        ReadError
            A chunk cannot be read.
        """
        array, variable = opened.arrays[v], opened.variables[v]
        basin_chunk = array.grid.basin.chunk_of(piece.basin_start)
        time_chunks = array.grid.time.chunks_of(piece.step_start, piece.step_stop)
        lost: list[slice] = []
        broken, num_chunks, num_bytes = False, 0, 0
        for time_chunk, state, nbytes in self._compare(opened, v, basin_chunk, time_chunks, fetch.stat, fetch.again):
            if nbytes is not None:
                num_chunks, num_bytes = num_chunks + 1, num_bytes + nbytes
            if state == "error" or (
                state == "absent" and variable.rule is not None and variable.rule.absent_is_missing
            ):
                lost.append(_columns(array, piece, time_chunk))
                broken = broken or state == "error"
        with self._lock:
            self.chunks_read += num_chunks
            self.bytes_read += num_bytes
        rows = _rows(piece)
        if not broken:
            values = array.read(rows, slice(piece.step_start, piece.step_stop), fetch, lease)
        else:
            shape = rows.stop - rows.start, piece.step_stop - piece.step_start
            values = np.zeros(shape, dtype=array.dtype.newbyteorder("="))
            for time_chunk in time_chunks:
                columns = _columns(array, piece, time_chunk)
                if columns not in lost:
                    values[:, columns] = array.read(rows, slice(*array.grid.time.bounds(time_chunk)), fetch)
        if fetch.may_change:  # one that was rewritten meanwhile may be half old and half new, or was asked for anew
            self._compare(opened, v, basin_chunk, time_chunks, fetch.stat)
        return values, lost

    def check(self, opened: OpenDataset, v: int, basin_chunk: int, time_chunk: int) -> None:
        """Compare a stored object that is not read with what the scan saw; raises as :meth:`read`."""
        array = opened.arrays[v]
        one = range(time_chunk, time_chunk + 1)
        self._compare(opened, v, basin_chunk, one, lambda _: array.stat(basin_chunk, time_chunk))

    def _compare(
        self,
        opened: OpenDataset,
        v: int,
        basin_chunk: int,
        time_chunks: range,
        look: Callable[[str], ObjectStat | None],
        again: Callable[[list[str]], bool] | None = None,
    ) -> list[tuple[int, str, int | None]]:
        """Look at stored objects, and ``again`` at one that is not as it was scanned.

        Return of each its time chunk, its state and its size, None where there is none.
        """
        array, variable = opened.arrays[v], opened.variables[v]
        seen = opened.source.chunks[variable.name].look_up_all(basin_chunk, time_chunks)
        found = []
        for time_chunk, facts in zip(time_chunks, seen, strict=True):
            key = array.object_key(basin_chunk, time_chunk)
            stat = look(key)
            now = "" if stat is None else stat.fingerprint
            while facts is not None and facts[1] != now and again is not None and again([key]):
                stat = look(key)
                now = "" if stat is None else stat.fingerprint
            if facts is None or facts[1] != now:
                raise StaleIndexError(_changed(opened, array, basin_chunk, time_chunk, facts, now))
            found.append((time_chunk, facts[0], None if stat is None else stat.nbytes))
        return found


def _rows(piece: ReadGroup) -> slice:
    return slice(piece.basin_start, piece.basin_stop)


def _columns(array: StoredArray, piece: ReadGroup, time_chunk: int) -> slice:
    start, stop = array.grid.time.bounds(time_chunk)
    return slice(start - piece.step_start, stop - piece.step_start)


def _changed(
    opened: OpenDataset, array: StoredArray, basin_chunk: int, time_chunk: int, facts: tuple[str, str] | None, now: str
) -> str:
    proof = "size:mtime" if remote_store(array.array) is None else "size:etag"
    return describe(
        "chunk changed after the index was built",
        where=f"data set {opened.source.dataset_id}, {array.uri}/{array.object_key(basin_chunk, time_chunk)}",
        expected="not scanned" if facts is None else f"{proof} {facts[1] or 'absent'}",
        got=f"{proof} {now or 'absent'}",
        fix="run build-index again with the same --out; it rescans only what changed",
    )
