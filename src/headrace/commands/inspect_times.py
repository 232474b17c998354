"""Steps → wall time for ``inspect``, in each data set's own calendar, which SQL does not know."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.loader import Index

_COLUMNS = {"first_step": "from_time", "last_step": "to_time"}
_DAY = 86_400


class StepTimes:
    """The time axes of an index, read once.

    Times are dates where every step of the index begins a day, else they go to the minute.
    """

    def __init__(self, index: Index) -> None:
        self._times = {name: index.times(name) for name in index.dataset_ids}
        axes = [index.time_axis(name) for name in self._times]
        daily = all(s.seconds % _DAY == 0 and axis.step_seconds % _DAY == 0 for axis in axes for s in axis.segments)
        self._length = 10 if daily else 16

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Replace the columns ``first_step`` and ``last_step`` by ``from_time`` and ``to_time``, text.

        Parameters
        ----------
        rows
            With a column ``dataset_id``.
        """
        dataset = np.asarray(rows["dataset_id"].to_pylist(), dtype=object)
        columns = {name: rows[name] for name in rows.schema.names if name not in _COLUMNS}
        for step_name, time_name in _COLUMNS.items():
            steps = rows[step_name].to_numpy()
            texts = np.empty(len(steps), dtype=object)
            for name in dict.fromkeys(dataset):
                mine = dataset == name
                distinct, where = np.unique(steps[mine], return_inverse=True)
                texts[mine] = _texts(self._times[name], distinct, self._length)[where]
            columns[time_name] = pa.array(texts, pa.string())
        return pa.RecordBatch.from_pydict(columns)


def _texts(
    times: NDArray[np.datetime64] | NDArray[np.object_], steps: NDArray[np.int64], length: int
) -> NDArray[np.object_]:
    """Return the time of each step, cut to so many characters of ``YYYY-MM-DD HH:MM``."""
    if times.dtype == object:
        texts = [time.strftime("%Y-%m-%d %H:%M") for time in times[steps]]
    else:
        texts = np.datetime_as_string(times[steps].astype("datetime64[m]"), unit="m").tolist()
    return np.array([text[:length].replace("T", " ") for text in texts], dtype=object)
