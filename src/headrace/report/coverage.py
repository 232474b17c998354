"""Which share of each variable is observed, by basin and year, as one heat map per data set and variable.

Legend: V variables, R rows (groups of neighbouring basins), C years.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headrace.loader import Index
from headrace.report.heat_map import Field, heat_map, shares_table
from headrace.report.numbers import plural, share
from headrace.report.overview import Dataset
from headrace.report.plot import Plot, Tick
from headrace.report.questions import ask, rows_of

MOST_CELLS = 60_000
"""Cells of all maps of a page together; rows stand for more basins where there would be more."""
MOST_ROWS, LEAST_ROWS = 60, 8
MOST_TABLE_CELLS = 12_000
_NAMED_ROWS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Maps of one data set; ``whole`` names its variables that are observed everywhere, which have no map."""

    dataset_id: str
    note: str
    whole: list[str]
    plots: list[Plot]


def coverage_groups(index: Index, datasets: Sequence[Dataset]) -> Iterator[Group]:
    """Yield the maps of each data set in turn."""
    series = rows_of(
        index,
        "SELECT dataset_id, variable FROM variables WHERE present AND role <> 'static' ORDER BY role, position",
    )
    names = {d.dataset_id: [r["variable"] for r in series if r["dataset_id"] == d.dataset_id] for d in datasets}
    years = {d.dataset_id: _years(index, d.dataset_id) for d in datasets}
    columns = sum(len(names[name]) * len(years[name]) for name in names)
    most_rows = min(MOST_ROWS, max(LEAST_ROWS, MOST_CELLS // max(columns, 1)))
    most_table_rows = max(2, MOST_TABLE_CELLS // max(columns, 1))
    for dataset in datasets:
        if names[dataset.dataset_id]:
            yield _group(
                index, dataset, names[dataset.dataset_id], years[dataset.dataset_id], most_rows, most_table_rows
            )


def _years(index: Index, dataset_id: str) -> dict[int, int]:
    """Return year → steps, in order."""
    text = """SELECT year, sum(stop - start)::BIGINT AS steps FROM years WHERE dataset_id = $name GROUP BY year
              ORDER BY year"""
    return {row["year"]: row["steps"] for row in rows_of(index, text, name=dataset_id)}


def _group(
    index: Index, dataset: Dataset, names: list[str], years: dict[int, int], most_rows: int, most_table_rows: int
) -> Group:
    group_size = -(-dataset.num_basins // most_rows)
    edges = [*range(0, dataset.num_basins, group_size), dataset.num_basins]
    observed = np.zeros((len(names), len(edges) - 1, len(years)))
    place = {year: i for i, year in enumerate(years)}
    for row in ask(index, "coverage", dataset_id=dataset.dataset_id, group_size=group_size):
        observed[names.index(row["variable"]), row["group_number"], place[row["year"]]] = row["observed"]
    possible = np.diff(edges)[:, None] * np.array(list(years.values()))[None, :]
    labels = _row_names(index, dataset.dataset_id, edges)
    whole = [name for v, name in enumerate(names) if (observed[v] == possible).all()]
    plots = [
        _map(name, observed[v] / possible, possible, labels, list(years), most_table_rows)
        for v, name in enumerate(names)
        if name not in whole
    ]
    rows = "a row is one basin" if group_size == 1 else f"a row is the mean of {group_size} neighbouring basins"
    return Group(
        dataset_id=dataset.dataset_id,
        note=f"{plural(dataset.num_basins, 'basin')}, {plural(len(years), 'year')}; {rows}, in the order of the index.",
        whole=whole,
        plots=plots,
    )


def _row_names(index: Index, dataset_id: str, edges: list[int]) -> list[str]:
    wanted = sorted({edge for a, b in pairwise(edges) for edge in (a, b - 1)})
    text = "SELECT basin, basin_id FROM basins WHERE dataset_id = $name AND list_contains($wanted, basin)"
    ids = {r["basin"]: r["basin_id"] for r in rows_of(index, text, name=dataset_id, wanted=wanted)}
    return [ids[a] if b - a == 1 else f"{ids[a]} … {ids[b - 1]}" for a, b in pairwise(edges)]


def _map(
    name: str,
    shares: NDArray[np.float64],
    possible: NDArray[np.int64],
    labels: list[str],
    years: list[int],
    most_table_rows: int,
) -> Plot:
    field = Field(shares=shares, rows=labels, columns=[str(year) for year in years])
    whole = float((shares * possible).sum() / possible.sum())
    by_year = (shares * possible).sum(axis=0) / possible.sum(axis=0)
    by_row = (shares * possible).sum(axis=1) / possible.sum(axis=1)
    least = int(by_year.argmin())
    words = f"{share(whole)} observed"
    if whole < 1:
        words += (
            f"; least in {years[least]} with {share(float(by_year[least]))}, "
            f"and in {labels[int(by_row.argmin())]} with {share(float(by_row.min()))}"
        )
    return heat_map(
        f"{name}: {share(whole)} observed",
        field,
        description=words + ".",
        x_ticks=year_ticks(years),
        y_ticks=row_ticks(labels),
        height=int(min(260, max(90, 16 * len(labels)))),
        table=shares_table(f"{name}: share observed", "basin", field, most_rows=most_table_rows),
    )


def year_ticks(years: Sequence[int]) -> list[Tick]:
    """Return ticks in the middle of some years' columns."""
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if len(years) / s <= 7)
    chosen = [i for i, year in enumerate(years) if year % step == 0]
    return [Tick(round(100 * (i + 0.5) / len(years), 2), str(years[i]), spare=k % 2 == 1) for k, i in enumerate(chosen)]


def row_ticks(labels: Sequence[str]) -> list[Tick]:
    """Return ticks in the middle of the rows: all where they are few, else the first and the last."""
    few = len(labels) <= _NAMED_ROWS
    chosen = range(len(labels)) if few else (0, len(labels) - 1)
    return [Tick(round(100 * (i + 0.5) / len(labels), 2), _short(labels[i])) for i in chosen]


def _short(label: str) -> str:
    first = label.split(" … ", 1)[0]
    return first if len(first) <= 12 else f"{first[:11]}…"
