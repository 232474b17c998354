"""A time axis as CF writes it: integers, their units and a calendar; dates only for the eye."""

from calendar import monthrange
from dataclasses import dataclass

import cftime
import numpy as np
from numpy.typing import NDArray

from headrace.schemas.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """Time axis of a store.

    Parameters
    ----------
    values
        int64 [T], in ``units``.
    units
        CF units, such as ``days since 1980-01-01``.
    calendar
        CF calendar.
    """

    values: NDArray[np.int64]
    units: str
    calendar: str = "standard"

    def __post_init__(self) -> None:
        """Refuse values that are no integers."""
        if self.values.ndim != 1 or not np.issubdtype(self.values.dtype, np.integer):
            raise ConfigError(
                f"a time axis is one row of integers, got {self.values.dtype} of shape {self.values.shape}"
            )

    def ticks(self) -> NDArray[np.int64]:
        """Return int64 [T]: how many steps each value lies after the first, missing ones included."""
        ticks: NDArray[np.int64] = (self.values - self.values[:1]) // self._step()
        return ticks

    def step_seconds(self) -> float:
        """Return the length of a step in seconds; that of one unit for an axis of a single value."""
        first, second = cftime.num2date(np.array([0, self._step()]), self.units, self.calendar)
        return float((second - first).total_seconds())

    def _step(self) -> int:
        """Return the step in ``units``: the smallest distance of neighbours, because gaps are longer."""
        return int(np.diff(self.values).min()) if len(self.values) > 1 else 1

    def dates(self, steps: slice = slice(None)) -> NDArray[np.datetime64]:
        """Return datetime64[s] dates of some steps, for axis labels.

        A date that only another calendar has (30 February) becomes the last of its month.
        """
        dates = cftime.num2date(self.values[steps], self.units, self.calendar, only_use_cftime_datetimes=True)
        return np.array([_plain(date) for date in np.atleast_1d(dates)], dtype="datetime64[s]")


def _plain(date: cftime.datetime) -> np.datetime64:
    day = min(date.day, monthrange(date.year, date.month)[1])
    text = f"{date.year:04d}-{date.month:02d}-{day:02d}T{date.hour:02d}:{date.minute:02d}:{date.second:02d}"
    return np.datetime64(text, "s")
