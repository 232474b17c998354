"""Statistics of each variable, with the spread of its basins as histograms.

An index holds counts, means and deviations of each basin and stretch of time, not the values; so a histogram of a
variable over time is of its basins' means. Statics are one value per basin, and theirs is of the values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader import Index
from headrace.report.histogram import histogram
from headrace.report.numbers import count, share, value
from headrace.report.overview import Dataset
from headrace.report.plot import DataTable, Plot
from headrace.report.questions import Row

MOST_HISTOGRAMS = 240
_FEWEST_VALUES = 8

_MEANS = """SELECT mean AS value FROM stats
WHERE scope = 'basin' AND dataset_id = $dataset_id AND variable = $variable AND count > 0"""
_STATICS = "SELECT value FROM statics WHERE dataset_id = $dataset_id AND variable = $variable"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableSection:
    """What the page says of one variable."""

    name: str
    role: str
    table: DataTable
    plots: list[Plot]


def variable_sections(index: Index, datasets: Sequence[Dataset], series: Sequence[Row]) -> Iterator[VariableSection]:
    """Yield a section per variable, in the order of the model's columns.

    Parameters
    ----------
    index, datasets
        The index.
    series
        Rows of the query ``series``.
    """
    room = MOST_HISTOGRAMS
    steps = {d.dataset_id: d.num_basins * d.num_steps for d in datasets}
    for name in dict.fromkeys(row["variable"] for row in series):
        rows = [row for row in series if row["variable"] == name]
        static = rows[0]["role"] == "static"
        plots: list[Plot] = []
        for row in rows:
            if row["present"] and row["count"] and len(plots) < room:
                plots += _plots(index, row, static=static)
        room -= len(plots)
        yield VariableSection(
            name=name, role="static" if static else rows[0]["role"], table=_table(name, rows, steps), plots=plots
        )


def _table(name: str, rows: Sequence[Row], steps: dict[str, int]) -> DataTable:
    body = []
    for row in rows:
        observed = "–" if row["role"] == "static" else share(row["observed"] / steps[row["dataset_id"]])
        if not row["present"]:
            body.append((row["dataset_id"], "–", "not in the store", *["–"] * 6))
            continue
        numbers = [value(row[key] if row["count"] else None) for key in ("mean", "std", "min", "max")]
        body.append((row["dataset_id"], row["unit"] or "–", row["array"], observed, count(row["count"] or 0), *numbers))
    header = ("data set", "unit", "array", "observed", "values", "mean", "std", "min", "max")
    return DataTable(caption=f"Statistics of {name}", header=header, rows=body, texts=3)


def _plots(index: Index, row: Row, *, static: bool) -> list[Plot]:
    found = index.sql(_STATICS if static else _MEANS, dataset_id=row["dataset_id"], variable=row["variable"])
    values: NDArray[np.float64] = found.column("value").to_numpy().astype(np.float64)
    values = values[np.isfinite(values)]
    if values.size < _FEWEST_VALUES:
        return []
    return [histogram(row["dataset_id"], values, row["unit"] or "", "basins")]
