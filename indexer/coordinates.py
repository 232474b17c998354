"""From the coordinates of a store to what an index needs: one row per basin id, time as regular segments."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.coordinates import read_times
from headrace.indexer.time_order import FixTime, mended
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.time_axis import TimeAxis, find_segments
from headrace.snapshot import ArraySnapshot, look_at, times_content
from headrace.store import TIME_DIM


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTime:
    """The time coordinate of a store.

    Parameters
    ----------
    axis
        Regular segments, in the order of the index.
    order
        int64 [steps of the index], stored step of each; None unless the axis was mended.
    num_stored
        Stored steps.
    snapshot
        What the coordinate looked like.
    """

    axis: TimeAxis
    order: NDArray[np.int64] | None
    num_stored: int
    snapshot: ArraySnapshot


def read_time(group: zarr.Group, uri: str, fix_time: FixTime = "none") -> StoreTime:
    """Return the time axis of a store, mended if asked for.

    Raises
    ------
    SourceError
        The coordinate lacks, has no CF units, or is not a strictly increasing multiple of one step.
    """
    seen = look_at(group, uri, "timeseries", TIME_DIM, "time")
    times = read_times(group, uri)
    seconds, order = mended(times.values, times.units, times.calendar, times.where, fix_time)
    axis = find_segments(seconds, times.calendar, times.where)
    snapshot = replace(seen, content=times_content(times))
    return StoreTime(axis=axis, order=order, num_stored=times.values.size, snapshot=snapshot)


def unique_rows(ids: list[str], *, policy: str, where: str, key: str) -> dict[str, int]:
    """Return id → store row in store order, one row per id.

    Raises
    ------
    ConfigError
        An id occurs more than once and the policy is ``error``.
    """
    repeated = {text: n for text, n in Counter(ids).items() if n > 1}
    if repeated and policy == "error":
        named = ", ".join(f"{text} ({n} rows)" for text, n in list(repeated.items())[:10])
        more = f" and {len(repeated) - 10} more" if len(repeated) > 10 else ""
        raise ConfigError(
            describe(
                "basins occur more than once",
                where=where,
                expected="one row per basin",
                got=f"{len(ids)} rows for {len(set(ids))} basins: {named}{more}",
                fix=f"mend the store, or set {key}.duplicate_basins: first (or last)",
            )
        )
    rows: dict[str, int] = {}
    for row, text in enumerate(ids):
        if text not in rows or policy == "last":
            rows[text] = row
    return dict(sorted(rows.items(), key=lambda item: item[1]))
