"""Scores on a terminal: one row per data set and target, within 100 columns."""

import math
from collections.abc import Mapping, Sequence

from rich.table import Table

from headrace.schemas.units import same_unit
from headrace.trainer.comparable import MIXED
from headrace.trainer.metrics import MetricRow


def score_table(
    rows: Sequence[MetricRow],
    units: Mapping[tuple[str, str], str],
    title: str,
    baseline: Mapping[tuple[str, str], float] | None = None,
) -> Table:
    """Return the table of an evaluation; scores are medians over basins.

    Parameters
    ----------
    rows
        The metrics table.
    units
        (Data set, target) → unit of RMSE and bias. All data sets together have one where they agree.
    title
        Headline.
    baseline
        (data set, target) → median NSE of the climatology, for a column of its own; None leaves the column out.
    """
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("data set", overflow="fold")
    table.add_column("target", overflow="fold")
    numbers = ["basins", "NSE", *(["climatology"] if baseline is not None else []), "KGE", "RMSE", "bias"]
    for name in numbers:
        table.add_column(name, justify="right")
    table.add_column("unit")
    datasets = [row for row in rows if row.scope == "dataset"]
    several = len({row.dataset_id for row in datasets}) > 1
    for row in [*datasets, *(row for row in rows if row.scope == "all" and several)]:
        cells = [str(_num_basins(rows, row)), number(row.nse)]
        if baseline is not None:
            cells.append(number(baseline.get((row.dataset_id, row.target), math.nan)))
        cells += [number(row.kge), number(row.rmse), number(row.bias), _unit(row, units)]
        table.add_row(row.dataset_id or "all", row.target, *cells)
    return table


def remarks(rows: Sequence[MetricRow]) -> list[str]:
    """Return what there is to say of undefined scores: of each data set, and of all where they do not go together."""
    noted = [row for row in rows if row.scope == "dataset" and row.note]
    found = [f"{row.dataset_id} {row.target}, basins: {row.note}" for row in noted]
    for row in rows:
        mixed = [part for part in row.note.split("; ") if part.startswith(MIXED)] if row.scope == "all" else []
        if mixed:
            what = " and ".join(part.partition(":")[0].removeprefix("different_").replace("_", " ") for part in mixed)
            found.append(f"all {row.target}, no score in {what} that differ: {'; '.join(mixed)}")
    return found


def _unit(row: MetricRow, units: Mapping[tuple[str, str], str]) -> str:
    found = [unit for (name, target), unit in units.items() if target == row.target and row.dataset_id in ("", name)]
    return found[0] if found and all(same_unit(found[0], unit) for unit in found) else "–"


def _num_basins(rows: Sequence[MetricRow], of: MetricRow) -> int:
    """Return the number of basins whose NSE is defined and counts in a summary row."""
    basins = (row for row in rows if row.scope == "basin" and row.target == of.target)
    return sum(of.dataset_id in ("", row.dataset_id) and not math.isnan(row.nse) for row in basins)


def number(value: float) -> str:
    """Return a score with three decimals where that says something; a dash where it is undefined."""
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.4g}"
