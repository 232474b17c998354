"""What the page says of one evaluated split: medians, distribution, map, hydrographs, and every basin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.report.curves import Series, cdf_plot, hydrograph
from headrace.report.dot_map import dot_map
from headrace.report.find_table import FindTable, find_table
from headrace.report.numbers import count, plural, value
from headrace.report.places import Place
from headrace.report.plot import DataTable, Plot
from headrace.report.run_results import CsvRow, Evaluated, number
from headrace.schemas.units import same_unit, tidy
from headrace.trainer.shown_series import shown_series

MOST_STEPS = 1095
MOST_PAIRS = 12
"""Data sets and targets whose hydrographs are drawn; pictures of the others are in the run's folder."""
MOST_ROWS = 12_000
_KEYS = ("scope", "dataset_id", "basin_id", "target", "note", "kge_r", "kge_alpha", "kge_beta")
"""Columns that are no score, or a part of one, which a table of medians has no room for."""
_NAMES = {"count": "steps", "nse": "NSE", "kge": "KGE", "rmse": "RMSE", "pbias": "bias, %", "nse_pooled": "NSE, pooled",
          "fhv": "FHV, %", "flv": "FLV, %"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HydrographGroup:
    """Hydrographs of one data set and target."""

    title: str
    plots: list[Plot]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSection:
    """Everything about one split."""

    split: str
    medians: DataTable
    mixed: str
    figures: list[Plot]
    undefined: str
    hydrographs: list[HydrographGroup]
    hydrograph_note: str
    basins: FindTable


def split_section(evaluated: Evaluated, places: Mapping[tuple[str, str], Place]) -> SplitSection:
    """Return what there is to say.

    Parameters
    ----------
    evaluated
        Scores of the split.
    places
        (data set, basin id) → latitude and longitude, of the basins whose place is known.
    """
    figures = []
    for target in evaluated.targets:
        of_target = f" of {target}" if len(evaluated.targets) > 1 else ""
        found = evaluated.of(target)
        if not found:
            continue
        series = [Series(name, np.array([number(row["nse"]) for row in rows])) for name, rows in found.items()]
        figures.append(cdf_plot(f"Distribution of NSE{of_target}", series, "NSE"))
        figures += _map(f"NSE{of_target} by place", evaluated, target, places)
    undefined = sum(not row["nse"] for row in evaluated.basins)
    groups, note = _hydrographs(evaluated)
    return SplitSection(
        split=evaluated.split,
        medians=_medians(evaluated),
        mixed=_mixed(evaluated),
        figures=figures,
        undefined=f"NSE is undefined for {count(undefined)} of {plural(len(evaluated.basins), 'series', 'series')}; "
        "the list of basins says why."
        if undefined
        else "",
        hydrographs=groups,
        hydrograph_note=note,
        basins=_basins(evaluated),
    )


def _map(title: str, evaluated: Evaluated, target: str, places: Mapping[tuple[str, str], Place]) -> list[Plot]:
    rows = [r for r in evaluated.basins if r["target"] == target and (r["dataset_id"], r["basin_id"]) in places]
    if not rows:
        return []
    spots = np.array([places[r["dataset_id"], r["basin_id"]] for r in rows])
    return [dot_map(title, spots[:, 0], spots[:, 1], np.array([number(r["nse"]) for r in rows]))]


def _medians(evaluated: Evaluated) -> DataTable:
    several = len({row["dataset_id"] for row in evaluated.medians if row["scope"] == "dataset"}) > 1
    rows = [row for row in evaluated.medians if row["scope"] == "dataset" or several]
    columns, units = _score_columns(rows), _units_differ(evaluated)
    header = ("data set", "target", *units, *(_heading(evaluated, name) for name in columns))
    body = [
        (
            row["dataset_id"] or "all",
            row["target"],
            *(_unit(evaluated, row) for _ in units),
            *(_cell(row, name) for name in columns),
        )
        for row in rows
    ]
    return DataTable(caption="Medians over basins", header=header, rows=body, texts=2 + len(units))


def _units_differ(evaluated: Evaluated) -> list[str]:
    """Return the heading of a column of units where one is needed: RMSE and bias are not all in the same."""
    return ["unit"] if len({tidy(evaluated.units.get(pair, "")) for pair in evaluated.pairs}) > 1 else []


def _heading(evaluated: Evaluated, name: str) -> str:
    """Return what a column of scores is called; with the unit where all of it has one."""
    words = _NAMES.get(name, name.replace("_", " "))
    units = [evaluated.units.get(pair, "") for pair in evaluated.pairs]
    of_unit = name in ("rmse", "bias") and any(units) and not _units_differ(evaluated)
    return f"{words}, {units[0]}" if of_unit else words


def _unit(evaluated: Evaluated, row: CsvRow) -> str:
    """Return the unit of RMSE and bias in a row; a dash where it is not known, or not one."""
    name, target = row["dataset_id"], row["target"]
    found = [evaluated.units.get(pair, "") for pair in evaluated.pairs if pair[1] == target and name in ("", pair[0])]
    return found[0] if found and found[0] and all(same_unit(found[0], unit) for unit in found) else "–"


def _mixed(evaluated: Evaluated) -> str:
    """Return why rows of all data sets lack scores: what the notes say of different units."""
    parts = [p for row in evaluated.medians if row["scope"] == "all" for p in (row.get("note") or "").split("; ")]
    found = dict.fromkeys(p.replace("_", " ") for p in parts if p.startswith("different_"))
    return f"Of all data sets together there is no score in mixed units ({'; '.join(found)})." if found else ""


def _score_columns(rows: Sequence[CsvRow]) -> list[str]:
    """Return the columns that hold some value."""
    return [name for name in (rows[0] if rows else {}) if name not in _KEYS and any(row.get(name) for row in rows)]


def _cell(row: CsvRow, name: str) -> str:
    found = number(row.get(name))
    return count(int(found)) if name == "count" and not np.isnan(found) else value(found, 3)


def _basins(evaluated: Evaluated) -> FindTable:
    rows = sorted(evaluated.basins, key=lambda row: number(row["nse"]) if row["nse"] else -np.inf)[:MOST_ROWS]
    columns = [name for name in ("count", "nse", "kge", "rmse", "pbias") if name in (rows[0] if rows else {})]
    targets = ["target"] if len(evaluated.targets) > 1 else []  # on a phone scores should not be beyond the edge
    units, notes = _units_differ(evaluated), ["note"] if any(row.get("note") for row in rows) else []
    header = ("basin", "data set", *targets, *units, *(_heading(evaluated, name) for name in columns), *notes)
    body = [
        (
            row["basin_id"],
            row["dataset_id"],
            *(row["target"] for _ in targets),
            *(_unit(evaluated, row) for _ in units),
            *(_cell(row, name) for name in columns),
            *((row.get("note") or "–").replace("_", " ") for _ in notes),
        )
        for row in rows
    ]
    left = len(evaluated.basins) - len(rows)
    note = f"Worst first{f'; the best {count(left)} are in metrics.csv only' if left else ''}."
    return find_table(
        f"scores-{evaluated.split}", "Scores of each basin", header, body, note, texts=2 + len(targets) + len(units)
    )


def _hydrographs(evaluated: Evaluated) -> tuple[list[HydrographGroup], str]:
    if not (evaluated.folder / "predictions.zarr").is_dir():
        return [], "The predictions are not in the run's folder any more, so there are no hydrographs."
    groups = []
    for shown in shown_series(evaluated.folder, max_steps=MOST_STEPS, most=MOST_PAIRS):
        first = shown[0]
        label = f"{first.target}{f', {first.unit}' if first.unit else ''}"
        plots = [
            hydrograph(
                f"{s.place.capitalize()}: {s.basin_id}, NSE {value(s.nse, 3)}",
                s.dates,
                s.observed.astype(np.float64),
                s.simulated.astype(np.float64),
                label,
            )
            for s in shown
        ]
        several = len(evaluated.targets) > 1
        groups.append(HydrographGroup(title=f"{first.dataset_id}{f', {first.target}' if several else ''}", plots=plots))
    pairs = len({(row["dataset_id"], row["target"]) for row in evaluated.basins if row["nse"]})
    note = f"The first {count(MOST_STEPS)} predicted steps of the best, the median and the worst basin by NSE."
    if pairs > MOST_PAIRS:
        note += f" Of {count(pairs)} data sets and targets the first {MOST_PAIRS}; the others are in plots/."
    return groups, note
