"""Mend a time coordinate on request: which stored step each step of the index is.

``sort`` puts the steps in order of time. ``drop_duplicates`` does so too, keeps the first stored of equal times and
drops steps without a time.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headrace.schemas.dates import decode_seconds, iso_text, missing_times
from headrace.schemas.errors import SourceError, describe

FixTime = Literal["none", "sort", "drop_duplicates"]


def mended(
    values: NDArray[np.generic], units: str, calendar: str, where: str, fix_time: FixTime
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Decode stored times and put them in order.

    Parameters
    ----------
    values, units, calendar, where
        As :func:`headrace.schemas.dates.decode_seconds` takes them.
    fix_time
        What may be done.

    Returns
    -------
    seconds
        int64 [T], times in the order of the index.
    order
        int64 [T], stored step of each; None where that is the order they are stored in.

    Raises
    ------
    SourceError
        A time is missing or occurs twice, and ``fix_time`` does not say what to do.
    """
    if fix_time == "none":
        return decode_seconds(values, units, calendar, where), None
    order = np.arange(values.size)
    if fix_time == "drop_duplicates":
        lacking = missing_times(values)
        order = np.flatnonzero(~lacking)
        # Any time will do where one is missing: the step is dropped, and the others keep their places in messages.
        values = np.where(lacking, values[order[0]] if order.size else values.dtype.type(0), values)
    seconds = decode_seconds(values, units, calendar, where)
    order = order[np.argsort(seconds[order], kind="stable")]
    same = seconds[order[1:]] == seconds[order[:-1]]
    if fix_time == "sort" and same.any():
        i = int(np.flatnonzero(same)[0])
        raise SourceError(
            describe(
                "time coordinate repeats a time",
                where=f"{where}, index {order[i + 1]}",
                expected=f"times that differ, but {order[i]} has the same",
                got=iso_text(int(seconds[order[i]]), calendar),
                fix="set fix_time: drop_duplicates, which keeps the first of equal times",
            )
        )
    order = order[np.append(True, ~same)] if order.size else order
    stored = order.size == seconds.size and bool((order == np.arange(order.size)).all())
    return seconds[order], None if stored else order
