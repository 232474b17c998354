"""Steps → wall time for ``inspect``, in each data set's own calendar, which SQL does not know."""

from collections.abc import Iterator

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

    def put_into(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Replace the columns ``first_step`` and ``last_step`` by ``from_time`` and ``to_time``, text.

        Parameters
        ----------
        rows
            With a column ``dataset_id``.
        """
        kept = [field for field in rows.schema if field.name not in _COLUMNS]
        schema = pa.schema([*kept, *(pa.field(name, pa.string()) for name in _COLUMNS.values())])
        return pa.RecordBatchReader.from_batches(schema, self._convert(rows, schema))

    def _convert(self, rows: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            dataset = np.asarray(batch["dataset_id"].to_pylist(), dtype=object)
            columns = {field.name: batch[field.name] for field in batch.schema if field.name not in _COLUMNS}
            for step_name, time_name in _COLUMNS.items():
                steps = batch[step_name].to_numpy()
                texts = np.empty(len(steps), dtype=object)
                for name in dict.fromkeys(dataset):
                    mine = dataset == name
                    texts[mine] = _texts(self._times[name], steps[mine], self._length)
                columns[time_name] = pa.array(texts, pa.string())
            yield pa.RecordBatch.from_pydict(columns, schema=schema)


def _texts(times: NDArray[np.datetime64] | NDArray[np.object_], steps: NDArray[np.int64], length: int) -> list[str]:
    """Return the time of each step, cut to so many characters of ``YYYY-MM-DD HH:MM``."""
    if times.dtype != object:
        texts = np.datetime_as_string(times[steps].astype("datetime64[m]"), unit="m").tolist()
        return [text[:length].replace("T", " ") for text in texts]
    return [time.strftime("%Y-%m-%d %H:%M")[:length] for time in times[steps]]
