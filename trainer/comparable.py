"""Rows over several data sets hold no number that mixes units: a median of mm/day and m³/s would be neither."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.schemas.units import tidy
from headrace.trainer.metrics import MetricRow
from headrace.trainer.protocols import TargetUnits
from headrace.trainer.time_axis import TimeAxis

UNIT_SCORES = ("rmse", "bias", "nse_pooled")
"""In the target's unit, or, pooled, of values in it."""
STEP_SCORES = ("peak_timing",)
"""In time steps."""
UNKNOWN = "unknown"
MIXED = ("different_units", "different_time_steps")
"""Reasons given here."""


def without_mixed_units(
    rows: Sequence[MetricRow], units: TargetUnits | None, times: Mapping[str, TimeAxis]
) -> list[MetricRow]:
    """Return the table with scores of all data sets left empty where their unit is not the same in each, and say so.

    Parameters
    ----------
    rows
        The metrics table.
    units
        (Data set, target) → unit, where it is known; None says nothing of any.
    times
        Data set → time axis.

    Returns
    -------
    list of MetricRow
        In rows of scope ``all`` the note may end with ``different_units: mm/day, m^3/s`` and
        ``different_time_steps: 86400 s, 3600 s``. Data sets without an observed step do not count.
    """
    found = []
    for row in rows:
        if row.scope == "all":
            own = [r.dataset_id for r in rows if r.scope == "dataset" and r.target == row.target and r.count]
            named = [units.get((name, row.target), "") for name in own] if units is not None else []
            row = _emptied(row, UNIT_SCORES, MIXED[0], {tidy(unit): unit or UNKNOWN for unit in named})
            steps = {times[name].step_seconds() for name in own}
            row = _emptied(row, STEP_SCORES, MIXED[1], {f"{step:g}": f"{step:g} s" for step in steps})
        found.append(row)
    return found


def _emptied(row: MetricRow, scores: Sequence[str], reason: str, units: Mapping[str, str]) -> MetricRow:
    if len(units) < 2:
        return row
    note = "; ".join(filter(None, (row.note, f"{reason}: {', '.join(sorted(units.values()))}")))
    empty: dict[str, Any] = dict.fromkeys(scores, float("nan"))
    return replace(row, note=note, **empty)
