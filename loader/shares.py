"""Give every rank windows of its own, so that it reads and holds only its part of the stores.

Each data set is cut into one stretch of (basin, start) per rank. Ranks end up with nearly equal numbers of windows; a
cut moves a little to fall between two basin chunks, so that a chunk is read by one rank, or else between two basins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headrace.loader.content import Content
from headrace.loader.layout import lay_out
from headrace.loader.windows import Windows
from headrace.schemas.errors import ConfigError, describe

_LEEWAY = 100
"""A cut moves by at most this part of a rank's windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one process serves, and what it must know of the others.

    Parameters
    ----------
    content
        With the windows of this process.
    loads
        Windows of every share; one entry where all ranks share all windows.
    most_rows
        Decoded rows of the largest share.
    """

    content: Content
    loads: tuple[int, ...]
    most_rows: int


def whole_share(content: Content) -> Share:
    """Return everything: ranks then take their slices of each batch."""
    return Share(content=content, loads=(content.windows.total,), most_rows=content.layout.num_rows)


def own_share(content: Content, column: NDArray[np.int64], rank: int, world_size: int) -> Share:
    """Return the windows of a rank.

    Parameters
    ----------
    content
        All windows.
    column
        int64 [slots], basin chunk that each slot is read from.
    rank, world_size
        Whose part.

    Raises
    ------
    ConfigError
        Another sampling than every window once per epoch, or fewer windows than ranks.
    """
    sampling = content.spec.sampling
    if sampling.mode != "weighted_by_sample" or sampling.max_windows_per_basin is not None:
        raise ConfigError(
            describe(
                "rank_local serves every window of a rank once",
                where="WindowLoader(rank_local=True)",
                expected="sampling: weighted_by_sample without max_windows_per_basin",
                got=f"{sampling.mode}, max_windows_per_basin {sampling.max_windows_per_basin}",
                fix="leave rank_local or the sampling out",
            )
        )
    parts = share_windows(content.windows, content.layout.run_slot, column, world_size)
    if not all(part.total for part in parts):
        raise ConfigError(
            describe(
                "fewer windows than ranks",
                where="WindowLoader(rank_local=True)",
                expected=f"at least {world_size} windows",
                got=f"{content.windows.total}",
                fix="use fewer ranks, or leave rank_local out",
            )
        )
    layouts = [lay_out(part, content.spec.window.length) for part in parts]
    own = layouts[rank]
    keys, own_keys = (x.dataset.astype(np.int64) << 32 | x.basin for x in (content.layout, own))
    statics = content.statics[np.searchsorted(keys, own_keys)]
    return Share(
        content=replace(content, windows=parts[rank], layout=own, statics=statics),
        loads=tuple(part.total for part in parts),
        most_rows=max(layout.num_rows for layout in layouts),
    )


def share_windows(
    windows: Windows, run_slot: NDArray[np.int64], column: NDArray[np.int64], world_size: int
) -> list[Windows]:
    """Cut windows into one part per rank; every window lies in exactly one.

    Parameters
    ----------
    windows
        Runs, sorted by (data set, basin, start).
    run_slot
        int64 [runs], slot of each run.
    column
        int64 [slots], basin chunk of each slot.
    world_size
        Number of parts.
    """
    done = np.append(0, np.cumsum(windows.num_windows))
    leeway = int(done[-1]) // (world_size * _LEEWAY)
    of_run = column[run_slot]
    chunk_edges, basin_edges = (done[1:-1][np.diff(ids) != 0] for ids in (of_run, run_slot))
    owned: list[list[tuple[int, int]]] = [[] for _ in range(world_size)]
    given = [0] * (world_size + 1)  # windows that the ranks before r have so far
    low = 0
    for high in done[1:][np.append(np.diff(windows.dataset) != 0, True)].tolist():
        begin = low
        for rank in range(world_size):
            end = high
            if rank < world_size - 1:
                wanted = low + (rank + 1) * high // world_size - given[rank + 1]
                end = min(max(_moved(wanted, leeway, chunk_edges, basin_edges), begin), high)
            owned[rank].append((begin, end))
            given[rank + 1] += end - low
            begin = end
        low = high
    return [_cut_out(windows, done, stretches) for stretches in owned]


def _moved(wanted: int, leeway: int, *edges: NDArray[np.int64]) -> int:
    """Return the nearest edge within the leeway, of the first kind that has one; else the place itself."""
    for kind in edges:
        around = np.searchsorted(kind, wanted)
        near = kind[max(around - 1, 0) : around + 1]
        if near.size:
            nearest = int(near[np.argmin(np.abs(near - wanted))])
            if abs(nearest - wanted) <= leeway:
                return nearest
    return wanted


def _cut_out(windows: Windows, done: NDArray[np.int64], stretches: Sequence[tuple[int, int]]) -> Windows:
    """Return the windows at positions [begin, end) of each stretch, counted over all runs."""
    runs, skipped, counts = [], [], []
    for begin, end in stretches:
        if begin == end:
            continue
        touched = np.arange(np.searchsorted(done, begin, side="right") - 1, np.searchsorted(done, end, side="left"))
        low, high = np.maximum(done[touched], begin), np.minimum(done[touched + 1], end)
        runs.append(touched)
        skipped.append(low - done[touched])
        counts.append(high - low)
    run, skip, count = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (runs, skipped, counts))
    start = windows.start[run] + skip * windows.stride
    ends_early = skip + count < windows.num_windows[run]
    stop = np.where(ends_early, start + (count - 1) * windows.stride + 1, windows.stop[run])
    return Windows(
        dataset=windows.dataset[run],
        basin=windows.basin[run],
        start=start.astype(np.int32),
        stop=stop.astype(np.int32),
        num_windows=count,
        stride=windows.stride,
    )
