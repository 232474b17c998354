"""When the steps of a data set were and which stored chunk they lie in: for reports, nothing is read by it."""

from dataclasses import dataclass

import cftime
import numpy as np
from numpy.typing import NDArray

from headrace.loader.catalog import Index
from headrace.loader.read_plan import OpenDataset
from headrace.schemas.dates import EPOCH
from headrace.schemas.time_axis import TimeAxis

_NUMPY_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
_DAY_SECONDS = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetTimes:
    """Time of one data set.

    Parameters
    ----------
    axis
        Its segments.
    chunk_steps
        Steps of a stored chunk along time; with several grids the longest.
    """

    axis: TimeAxis
    chunk_steps: int

    def chunk_of(self, step: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the stored chunk along time that holds each step."""
        return step // self.chunk_steps

    def month_of(self, step: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the month, 1 to 12, of each step in the data set's calendar."""
        day, place = np.unique(self.axis.seconds()[step] // _DAY_SECONDS, return_inverse=True)
        if self.axis.calendar in _NUMPY_CALENDARS:
            month = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1
        else:
            dates = cftime.num2date(day * _DAY_SECONDS, EPOCH, calendar=self.axis.calendar)
            month = np.array([d.month for d in np.atleast_1d(dates)], dtype=np.int64)
        return month[place]


def dataset_times(index: Index, opened: OpenDataset) -> DatasetTimes:
    """Return the times of an open data set."""
    return DatasetTimes(
        axis=index.time_axis(opened.source.dataset_id),
        chunk_steps=max((a.grid.time.chunk_size for a in opened.arrays), default=1),
    )
