"""Masks to runs, and runs of neighbouring units to longer runs; NumPy only, all rows at once.

Legend: S rows, T steps, N runs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Half-open runs of many rows, struct of arrays, sorted by (row, start).

    Parameters
    ----------
    row, start, stop
        int32 [N].
    """

    row: NDArray[np.int32]
    start: NDArray[np.int32]
    stop: NDArray[np.int32]

    @classmethod
    def none(cls) -> "Runs":
        """Return no runs."""
        return cls(row=np.zeros(0, np.int32), start=np.zeros(0, np.int32), stop=np.zeros(0, np.int32))

    def __len__(self) -> int:
        """Return the number of runs."""
        return int(self.row.size)


def find_runs(observed: NDArray[np.bool_], *, first_row: int = 0, first_step: int = 0) -> Runs:
    """Return the maximal runs of True in each row of ``observed``, bool [S, T]."""
    num_rows, num_steps = observed.shape
    # A column of False on both sides ends every run inside its own row.
    padded = np.zeros((num_rows, num_steps + 2), dtype=np.bool_)
    padded[:, 1:-1] = observed
    flat = padded.reshape(-1)
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    row, start = np.divmod(edges[::2], num_steps + 2)
    stop = edges[1::2] - row * (num_steps + 2)
    return Runs(
        row=(row + first_row).astype(np.int32),
        start=(start + first_step).astype(np.int32),
        stop=(stop + first_step).astype(np.int32),
    )


def whole_rows(rows: NDArray[np.integer], start: int, stop: int) -> Runs:
    """Return the run [start, stop) in each of the given rows."""
    full = np.full(rows.shape, start, dtype=np.int32)
    return Runs(row=rows.astype(np.int32), start=full, stop=np.full_like(full, stop))


def join(parts: list[Runs]) -> Runs:
    """Return the runs of several parts, sorted; parts are disjoint, and each is sorted."""
    if not parts:
        return Runs.none()
    if len(parts) == 1:
        return parts[0]
    row, start, stop = (np.concatenate([getattr(p, n) for p in parts]) for n in ("row", "start", "stop"))
    order = ascending(row, start)
    return Runs(row=row[order], start=start[order], stop=stop[order])


def ascending(row: NDArray[np.int32], start: NDArray[np.int32]) -> NDArray[np.int64] | slice:
    """Return the index that sorts pairs (row, start), int32 [N], none twice; a slice where they are sorted."""
    place = row.astype(np.int64) << 32 | start
    return slice(None) if (place[1:] > place[:-1]).all() else np.argsort(place)


def stitch(runs: Runs) -> Runs:
    """Merge sorted runs that touch: the end of one unit's run is the start of the next one's."""
    if len(runs) == 0:
        return runs
    touches = (runs.row[1:] == runs.row[:-1]) & (runs.start[1:] == runs.stop[:-1])
    first = np.append(True, ~touches)
    last = np.append(~touches, True)
    return Runs(row=runs.row[first], start=runs.start[first], stop=runs.stop[last])


def observed_per_step(runs: Runs, start: int, stop: int) -> NDArray[np.int64]:
    """Return the number of rows observed at each step of [start, stop), int64 [T]."""
    opened = np.bincount(runs.start - start, minlength=stop - start + 1)
    closed = np.bincount(runs.stop - start, minlength=stop - start + 1)
    return np.cumsum(opened - closed)[: stop - start]
