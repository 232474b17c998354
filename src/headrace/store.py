"""Zarr stores as both phases see them: open by URI, arrays by meaning of their axes, stored objects by key.

A URI is a locator that crosses processes; the handles made here never do. Array metadata is always read from the array
itself, because consolidated metadata can be stale.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.chunk_length import refuse_cut, refuse_cut_of
from headrace.members import find_member
from headrace.object_keys import key_writer
from headrace.objects import ObjectStat
from headrace.objects.fetch import Fetch, FileFetch
from headrace.objects.local import stat_file
from headrace.objects.zarr_store import remote_store
from headrace.plain_chunks import Decoder, cut, decoder_of, read_plain
from headrace.schemas.errors import DamagedChunkError, ReadError, SourceError, describe
from headrace.schemas.grid import AxisGrid, ChunkGrid
from headrace.scratch import Lease
from headrace.uncopied import read_block

BASIN_DIM, TIME_DIM = "basin", "time"


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array of a store with its axes resolved.

    Parameters
    ----------
    uri, name
        Store and array path.
    array
        Open handle; stays in this process.
    dims
        Dimension names in stored order.
    grid
        Stored objects along basin and time; the time axis of a static has extent 1.
    decoder
        Decodes one stored object in the calling thread; None leaves it to Zarr.
    """

    uri: str
    name: str
    array: zarr.Array[Any]
    dims: tuple[str, ...]
    grid: ChunkGrid
    decoder: Decoder | None = None
    object_key: Callable[[int, int], str] = field(init=False, repr=False, compare=False)
    """Basin chunk and time chunk of a stored object → its key, relative to the store."""

    def __post_init__(self) -> None:
        """Make what writes keys."""
        object.__setattr__(self, "object_key", key_writer(self.array, self.name, self.grid))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored values."""
        return np.dtype(self.array.dtype)

    @property
    def attributes(self) -> dict[str, Any]:
        """User attributes of the array."""
        return dict(self.array.attrs)

    @property
    def where(self) -> str:
        """Store and array, for messages."""
        return f"{self.uri}, array {self.name}"

    def object_keys(self, basins: slice, steps: slice) -> list[str]:
        """Return the keys of the stored objects that hold a basin × step block."""
        return [
            self.object_key(b, t)
            for b in self.grid.basin.chunks_of(basins.start, basins.stop)
            for t in self.grid.time.chunks_of(steps.start, steps.stop)
        ]

    def stat(self, basin_chunk: int, time_chunk: int) -> ObjectStat | None:
        """Return size and fingerprint of a stored object, or None when it is proven absent.

        Of a store in a bucket this is how the array was listed when it was first asked for.
        """
        return stat_object(self.array, self.uri, self.name, self.object_key(basin_chunk, time_chunk))

    def fetch(self, basins: slice, steps: slice) -> Fetch:
        """Begin to fetch the stored objects of a block from a bucket; on a disk there is nothing to fetch ahead."""
        remote = remote_store(self.array)
        return FileFetch(self.uri) if remote is None else remote.fetch(self.object_keys(basins, steps))

    def read(self, basins: slice, steps: slice, fetch: Fetch | None = None, lease: Lease | None = None) -> NDArray[Any]:
        """Read raw values of a basin × step block, [S, T] whatever the stored order; absent chunks give fill values.

        Objects of a bucket of which one cannot be decoded are asked for once more, for it may be whole there.

        Parameters
        ----------
        basins, steps
            The block.
        fetch
            Its stored objects, or None to fetch them now.
        lease
            Gives memory for a large chunk: the values then hold until it is given back.

        Raises
        ------
        ReadError
            A chunk could not be read; names array, chunk keys and byte lengths.
        DamagedChunkError
            It was read and could not be decoded.
        """
        fetch = self.fetch(basins, steps) if fetch is None else fetch
        memory = None if self.decoder is None else self.decoder.memory(lease)
        while True:
            try:
                if self.decoder is not None:
                    return self._read_plain(basins, steps, fetch, self.decoder, memory)
                return self._read_through_zarr(basins, steps, fetch)
            except (ReadError, MemoryError):
                raise
            except Exception as error:  # each codec has exceptions of its own: zlib.error, EOFError, LZMAError, …
                if fetch.again(self.object_keys(basins, steps)):
                    continue
                if _is_fault(error):
                    fix = "mend the disk, the network or the rights, then run the same command again"
                    said = self._unreadable("chunk cannot be read", basins, steps, error, fix, fetch)
                    raise ReadError(said) from error
                fix = "write the chunk again from its source, or set missing.on_bad_chunk: missing"
                said = self._unreadable("chunk cannot be decoded", basins, steps, error, fix, fetch)
                raise DamagedChunkError(said) from error

    def _read_through_zarr(self, basins: slice, steps: slice, fetch: Fetch) -> NDArray[Any]:
        """Leave a block to Zarr."""
        for key in self.object_keys(basins, steps):
            refuse_cut_of(self.array, *(fetch.head(key) or (None, 0)))
        with fetch.serving():
            block = read_block(self.array, self.grid.selection(basins, steps))
        if not self.grid.has_time:
            return block[:, None]
        return block.T if self.grid.time_first else block

    def _read_plain(
        self, basins: slice, steps: slice, fetch: Fetch, decoder: Decoder, memory: NDArray[np.uint8] | None
    ) -> NDArray[Any]:
        """Decode here; a block of one stored object is handed on as the codec left it."""
        rows, columns = self.grid.basin.chunk_size, self.grid.time.chunk_size
        b, t = basins.start // rows, steps.start // columns
        if basins.stop <= (b + 1) * rows and steps.stop <= (t + 1) * columns:
            values = self._decoded(b, t, fetch, decoder, memory)
            if values is not None:
                return cut(values, self.grid, (b * rows, t * columns), basins, steps)
        chunks = (
            (b, t, self._decoded(b, t, fetch, decoder, memory))
            for b in self.grid.basin.chunks_of(basins.start, basins.stop)
            for t in self.grid.time.chunks_of(steps.start, steps.stop)
        )
        return read_plain(self.array, self.grid, chunks, basins, steps)

    def _decoded(
        self, b: int, t: int, fetch: Fetch, decoder: Decoder, memory: NDArray[np.uint8] | None
    ) -> NDArray[Any] | None:
        """Return a decoded chunk, None for an absent one; what lies in ``memory`` is overwritten by the next."""
        data = fetch.data(self.object_key(b, t))
        if data is None:
            return None
        if decoder.blosc:
            refuse_cut(data, len(data))
        return decoder(data, memory)

    def _unreadable(self, what: str, basins: slice, steps: slice, error: Exception, fix: str, fetch: Fetch) -> str:
        chunks = [(key, fetch.stat(key)) for key in self.object_keys(basins, steps)]
        named = ", ".join(f"{key} ({stat.nbytes} bytes)" for key, stat in chunks[:4] if stat is not None)
        more = f" and {len(chunks) - 4} more" if len(chunks) > 4 else ""
        return describe(
            what,
            where=f"{self.where}, {named}{more}",
            expected=f"{self.dtype}, basins [{basins.start}, {basins.stop}), steps [{steps.start}, {steps.stop})",
            got=f"{type(error).__name__}: {error}",
            fix=fix,
        )


def stat_object(array: "zarr.Array[Any]", uri: str, name: str, key: str) -> ObjectStat | None:
    """Return size and fingerprint of a stored object of an array, or None when it is proven absent.

    Parameters
    ----------
    array, uri, name
        The open array, its store and its name there.
    key
        Of the object, relative to the store.
    """
    remote = remote_store(array)
    return stat_file(f"{uri}/{key}") if remote is None else remote.listing(name).get(key)


def _is_fault(error: Exception) -> bool:
    """Return whether a read failed on its way to the bytes; a codec's own OSError has no number."""
    return isinstance(error, TimeoutError | ConnectionError) or (isinstance(error, OSError) and error.errno is not None)


def open_array(group: zarr.Group, uri: str, name: str, *, dims: tuple[str, ...]) -> StoredArray | None:
    """Open an array and resolve its axes by name.

    Parameters
    ----------
    group, uri
        Open store and its locator.
    name
        Array path inside the group.
    dims
        Dimensions the array must have, in any order; further ones may exist if their length is 1.

    Returns
    -------
    StoredArray or None
        None when there is no array of that name.

    Raises
    ------
    SourceError
        The array has other dimensions, or none are named.
    """
    array = find_member(group, uri, name)
    if array is None:
        return None
    names = dimension_names(array)
    spare = [i for i, dim in enumerate(names) if dim not in dims]
    fits = len(names) == array.ndim and len(set(names)) == len(names) and set(dims) <= set(names)
    if not fits or any(array.shape[i] != 1 for i in spare):
        sizes = (
            ", ".join(f"{dim}={size}" for dim, size in zip(names, array.shape, strict=False)) or "no dimension names"
        )
        raise SourceError(
            describe(
                "array has other dimensions",
                where=f"{uri}, array {name}",
                expected=f"({', '.join(dims)}) in any order, others of length 1",
                got=sizes,
                fix="choose another array, or name its dimensions (_ARRAY_DIMENSIONS or dimension_names)",
            )
        )
    return StoredArray(uri, name, array, names, _grid(array, names, tuple(spare)), decoder_of(array))


def dimension_names(array: zarr.Array[Any]) -> tuple[str, ...]:
    """Return the names of an array's dimensions in stored order; empty where none are given."""
    named = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS") or ()
    return tuple(str(n) for n in named) if isinstance(named, list | tuple) else ()


def _grid(array: zarr.Array[Any], names: tuple[str, ...], spare: tuple[int, ...]) -> ChunkGrid:
    stored = array.shards or array.chunks
    order = {dim: i for i, dim in enumerate(names) if i not in spare}
    axes = {dim: AxisGrid(extent=array.shape[i], chunk_size=max(stored[i], 1)) for dim, i in order.items()}
    whole = AxisGrid(extent=1, chunk_size=1)
    return ChunkGrid(
        basin=axes.get(BASIN_DIM, whole),
        time=axes.get(TIME_DIM, whole),
        time_first=list(order) == [TIME_DIM, BASIN_DIM],
        has_time=TIME_DIM in axes,
        extra=spare,
    )
