"""Chunk arithmetic on one axis and on a whole array, in integers only.

An :class:`AxisGrid` cuts ``extent`` elements into chunks of ``chunk_size``; a :class:`ChunkGrid` holds the
basin and the time axis of one array, whatever their order in the store.
"""

from dataclasses import dataclass
from typing import TypeVar

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisGrid:
    """A regular cut of one axis.

    Parameters
    ----------
    extent
        Number of elements on the axis.
    chunk_size
        Elements per chunk; the last chunk may hold fewer.
    """

    extent: int
    chunk_size: int

    def __post_init__(self) -> None:
        """Refuse sizes that no axis can have."""
        if self.extent < 0 or self.chunk_size < 1:
            msg = f"extent must be >= 0 and chunk_size >= 1, got {self.extent} and {self.chunk_size}"
            raise ValueError(msg)

    @property
    def num_chunks(self) -> int:
        """Number of chunks, the last one possibly partial."""
        return -(-self.extent // self.chunk_size)

    def chunk_of(self, position: int) -> int:
        """Return the chunk that holds an element."""
        if not 0 <= position < self.extent:
            msg = f"position {position} is outside [0, {self.extent})"
            raise IndexError(msg)
        return position // self.chunk_size

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Return the half-open element range ``[start, stop)`` of a chunk, clipped to the extent."""
        if not 0 <= chunk < self.num_chunks:
            msg = f"chunk {chunk} is outside [0, {self.num_chunks})"
            raise IndexError(msg)
        start = chunk * self.chunk_size
        return start, min(start + self.chunk_size, self.extent)

    def chunks_of(self, start: int, stop: int) -> range:
        """Return the chunks that the non-empty element range ``[start, stop)`` touches."""
        return range(self.chunk_of(start), self.chunk_of(stop - 1) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkGrid:
    """How one array is cut into stored objects (shards where it is sharded, chunks otherwise).

    Parameters
    ----------
    basin, time
        The two axes by meaning.
    time_first
        Whether the array is stored (time, basin) rather than (basin, time).
    has_time
        False for statics, whose time axis is a stand-in of extent 1.
    extra
        Ascending positions of further axes, all of length 1, in the stored order.
    """

    basin: AxisGrid
    time: AxisGrid
    time_first: bool = False
    has_time: bool = True
    extra: tuple[int, ...] = ()

    def _place(self, basin: _Part, time: _Part, extra: _Part) -> tuple[_Part, ...]:
        axes = [basin] if not self.has_time else [time, basin] if self.time_first else [basin, time]
        for position in self.extra:
            axes.insert(position, extra)
        return tuple(axes)

    def object_index(self, basin_chunk: int, time_chunk: int) -> tuple[int, ...]:
        """Return the stored object's coordinates in the array's own axis order."""
        return self._place(int(basin_chunk), int(time_chunk), 0)

    def selection(self, basins: slice, steps: slice) -> tuple[slice | int, ...]:
        """Return the selection that reads a basin × step block, in the array's own axis order.

        Extra axes are taken by their only index, so the result has two dimensions (one without time).
        """
        return self._place(basins, steps, 0)
