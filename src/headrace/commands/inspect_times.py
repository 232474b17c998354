"""Steps → wall time for ``inspect``, in each data set's own calendar, which SQL does not know."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.loader import Index
from headrace.schemas.dates import iso_text


def year_spans(index: Index) -> dict[str, list[Any]]:
    """Return the steps of each calendar year of each data set, as parameters of a query: lists of equal length.

    Returns
    -------
    dict
        year_datasets, years, starts, stops; a year cut by a gap of the time axis is one span.
    """
    spans: dict[str, list[Any]] = {"year_datasets": [], "years": [], "starts": [], "stops": []}
    for name in index.dataset_ids:
        times = index.times(name)
        if times.dtype == object:
            years = np.array([time.year for time in times])
        else:
            years = times.astype("datetime64[Y]").astype(np.int64) + 1970
        edges = [0, *(np.flatnonzero(np.diff(years)) + 1).tolist(), len(years)]
        for start, stop in pairwise(edges):
            for key, value in zip(spans, (name, int(years[start]), start, stop), strict=True):
                spans[key].append(value)
    return spans


def with_times(table: pa.Table, index: Index) -> pa.Table:
    """Replace a table's column ``first_step`` by ``from_time``, ISO text."""
    axes = {name: index.time_axis(name) for name in index.dataset_ids}
    seconds = {name: axis.seconds() for name, axis in axes.items()}
    texts = [
        iso_text(int(seconds[name][step]), axes[name].calendar)[:16].replace("T", " ")
        for name, step in zip(table["dataset_id"].to_pylist(), table["first_step"].to_pylist(), strict=True)
    ]
    return table.drop_columns("first_step").append_column("from_time", pa.array(texts, pa.string()))
