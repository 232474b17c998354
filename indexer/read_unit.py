"""The I/O shell around :func:`headrace.indexer.scan.scan`: open, look, read each stored object once, scan.

A stored object is absent only where the file system proves it. What cannot be decoded is an error or, if the policy
says so, missing; it is never taken for absent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.indexer.coordinates import read_time
from headrace.indexer.decoded_unit import decoded_unit
from headrace.indexer.fingerprint import metadata_digest, objects_digest, order_digest
from headrace.indexer.scan import Piece, ScanResult, is_small, scan, scan_decoded
from headrace.indexer.time_order import FixTime
from headrace.indexer.units import ScanUnit
from headrace.objects import ObjectStat
from headrace.objects.fetch import Fetch
from headrace.open_store import open_group
from headrace.plain_chunks import absent_value
from headrace.schemas.config import BadChunkPolicy
from headrace.schemas.errors import DamagedChunkError, ReadError, describe
from headrace.schemas.storage_config import StorageConfig
from headrace.scratch import Lease
from headrace.store import BASIN_DIM, TIME_DIM, StoredArray, open_array

READ_NBYTES = 256 << 10
"""Chunks are read together up to this size: many tiny ones in one call, others alone, to stay in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFacts:
    """One stored object of a unit, as the table ``chunks`` tells it."""

    basin_chunk: int
    time_chunk: int
    rows: tuple[int, int]
    steps: tuple[int, int]
    state: str
    stored_nbytes: int
    valid_count: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitResult:
    """Result of one unit: its chunks in order of time, its runs and its moments."""

    unit: ScanUnit
    chunks: tuple[ChunkFacts, ...]
    scanned: ScanResult


def fetch_unit(unit: ScanUnit, storage: StorageConfig) -> Fetch:
    """Begin to fetch the stored objects of a unit, where its store is in a bucket."""
    stored = _open(unit.uri, storage, unit.array, unit.metadata)
    bounds = [stored.grid.time.bounds(t) for t in (unit.time_chunks[0], unit.time_chunks[1] - 1)]
    return stored.fetch(slice(*unit.rows), slice(bounds[0][0], bounds[1][1]))


def scan_unit(
    unit: ScanUnit,
    policy: BadChunkPolicy,
    storage: StorageConfig,
    fetch: Fetch | None = None,
    lease: Lease | None = None,
) -> UnitResult:
    """Read and scan one unit.

    Parameters
    ----------
    unit
        What to scan.
    policy
        What a chunk that cannot be decoded means.
    storage
        How its store is reached if it is in a bucket.
    fetch
        Its stored objects where :func:`fetch_unit` was called before.
    lease
        Gives memory for large chunks, given back when the unit is scanned.

    Raises
    ------
    ReadError
        A chunk cannot be decoded and the policy is ``error``, or the store changes while it is read.
    """
    stored = _open(unit.uri, storage, unit.array, unit.metadata)
    fetch = fetch_unit(unit, storage) if fetch is None else fetch
    keys = [stored.object_key(unit.basin_chunk, t) for t in range(*unit.time_chunks)]
    while objects_digest(stats := [fetch.stat(key) for key in keys]) != unit.objects:
        if not fetch.again(keys):
            raise _changed(stored, unit)
    bounds = [stored.grid.time.bounds(t) for t in range(*unit.time_chunks)]
    bad: set[tuple[int, int]] = set()
    order = _order(unit.uri, storage, unit.fix_time, unit.order) if unit.order else None
    starts, stored_steps = [start for start, _ in bounds], (bounds[0][0], bounds[-1][1])
    decoded = decoded_unit(stored, unit, keys, bounds, fetch, lease)
    if decoded is None:
        pieces = _read(stored, unit, bounds, stats, policy, fetch, lease, bad)
        scanned = scan(pieces, unit, chunk_starts=starts, stored_steps=stored_steps, order=order)
    else:
        scanned = scan_decoded(decoded, unit, chunk_starts=starts, stored_steps=stored_steps, order=order)
    if fetch.may_change and objects_digest([fetch.stat(key) for key in keys]) != unit.objects:
        raise _changed(stored, unit)
    fetch.drop()
    if lease is not None:
        lease.give_back()
    return UnitResult(unit=unit, chunks=_chunks(unit, bounds, stats, bad, scanned), scanned=scanned)


@lru_cache(maxsize=128)
def _open(uri: str, storage: StorageConfig, name: str, metadata: str) -> StoredArray:
    """Open an array once per process; another state of its metadata is another entry."""
    for opening in (_group, open_group):
        stored = open_array(opening(uri, storage), uri, name, dims=(BASIN_DIM, TIME_DIM))
        if stored is not None and metadata_digest(stored) == metadata:
            return stored
    raise ReadError(
        describe(
            "array changed while the index was built",
            where=f"{uri}, array {name}",
            expected="the metadata seen at the start",
            got="other metadata",
            fix="run the same command again",
        )
    )


@lru_cache(maxsize=16)
def _group(uri: str, storage: StorageConfig) -> zarr.Group:
    """Open a store once per process; it may have changed since, which the digest of an array's metadata shows."""
    return open_group(uri, storage)


@lru_cache(maxsize=8)
def _order(uri: str, storage: StorageConfig, fix_time: FixTime, expected: str) -> NDArray[np.int64] | None:
    """Read once per process which stored step each step is: a task carries the digest alone."""
    order = read_time(open_group(uri, storage), uri, fix_time).order
    if order_digest(order) != expected:
        raise ReadError(
            describe(
                "time coordinate changed while the index was built",
                where=uri,
                expected="the times seen at the start",
                got="others",
                fix="run the same command again",
            )
        )
    return order


def _read(
    stored: StoredArray,
    unit: ScanUnit,
    bounds: Sequence[tuple[int, int]],
    stats: Sequence[ObjectStat | None],
    policy: BadChunkPolicy,
    fetch: Fetch,
    lease: Lease | None,
    bad: set[tuple[int, int]],
) -> Iterator[Piece]:
    """Yield the raw values; step ranges of chunks that cannot be decoded are added to ``bad``."""
    rows = slice(*unit.rows)
    step_nbytes = stored.dtype.itemsize * (rows.stop - rows.start)
    small = is_small(rows.stop - rows.start, bounds[-1][1] - bounds[0][0])
    for group in _grouped(range(len(bounds)), lambda i: step_nbytes * (bounds[i][1] - bounds[i][0])):
        start, stop = bounds[group[0]][0], bounds[group[-1]][1]
        absent = [bounds[i] for i in group if stats[i] is None]
        lost = absent if unit.rule.absent_is_missing else []
        if len(absent) == len(group):
            fill = np.asarray(absent_value(stored.array), dtype=stored.dtype)
            raw = np.broadcast_to(fill, (rows.stop - rows.start, stop - start))
            yield Piece(start=start, stop=stop, raw=raw, lost=lost)
            continue
        try:
            raw = stored.read(rows, slice(start, stop), fetch, lease)
        except DamagedChunkError:
            if policy == "error" and len(group) == 1:
                raise
            yield from _read_one_by_one(stored, rows, [bounds[i] for i in group], policy, fetch, lost, bad)
        else:
            yield Piece(start=start, stop=stop, raw=raw, lost=lost)
            if small and lease is not None:
                lease.give_back()  # the next one is decoded into the same memory


def _grouped(chunks: Iterable[int], nbytes_of: Callable[[int], int]) -> list[list[int]]:
    """Group neighbouring chunks for one read each: tiny ones together, large ones alone."""
    groups: list[list[int]] = []
    nbytes = 0
    for chunk in chunks:
        size = nbytes_of(chunk)
        if not groups or nbytes + size > READ_NBYTES:
            groups.append([])
            nbytes = 0
        groups[-1].append(chunk)
        nbytes += size
    return groups


def _read_one_by_one(
    stored: StoredArray,
    rows: slice,
    bounds: Sequence[tuple[int, int]],
    policy: BadChunkPolicy,
    fetch: Fetch,
    lost: Sequence[tuple[int, int]],
    bad: set[tuple[int, int]],
) -> Iterator[Piece]:
    """Read chunk by chunk, so that the bad one is named, or it alone is missing."""
    for start, stop in bounds:
        try:
            raw = stored.read(rows, slice(start, stop), fetch)
        except DamagedChunkError:
            if policy == "error":
                raise
            bad.add((start, stop))
            raw = np.broadcast_to(np.zeros((), dtype=stored.dtype), (rows.stop - rows.start, stop - start))
        gone = [b for b in ((start, stop),) if b in bad or b in lost]
        yield Piece(start=start, stop=stop, raw=raw, lost=gone)


def _chunks(
    unit: ScanUnit,
    bounds: Sequence[tuple[int, int]],
    stats: Sequence[ObjectStat | None],
    bad: set[tuple[int, int]],
    scanned: ScanResult,
) -> tuple[ChunkFacts, ...]:
    chunks = []
    for i, (steps, stat) in enumerate(zip(bounds, stats, strict=True)):
        valid = int(scanned.valid_count[i])
        state = "absent" if stat is None else "error" if steps in bad else "data" if valid else "missing"
        chunks.append(
            ChunkFacts(
                basin_chunk=unit.basin_chunk,
                time_chunk=unit.time_chunks[0] + i,
                rows=unit.rows,
                steps=steps,
                state=state,
                stored_nbytes=0 if stat is None else stat.nbytes,
                valid_count=valid,
                fingerprint="" if stat is None else stat.fingerprint,
            )
        )
    return tuple(chunks)


def _changed(stored: StoredArray, unit: ScanUnit) -> ReadError:
    first, last = (stored.object_key(unit.basin_chunk, t) for t in (unit.time_chunks[0], unit.time_chunks[1] - 1))
    return ReadError(
        describe(
            "store changed while the index was built",
            where=f"{stored.uri}, {first} to {last}",
            expected="size and time of the chunks seen at the start",
            got="others",
            fix="wait until the store is written, then run the same command again",
        )
    )
