"""A matrix of shares as a field of coloured cells, with values that the page's script reads out cell by cell.

Neighbours of one colour in a row are drawn as one piece, so that records without gaps cost next to nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from headrace.report.numbers import share
from headrace.report.plot import DataTable, Plot, Tick, path

NUM_LEVELS = 10
"""Level 0 is nothing, level 10 is all; between them the classes are of equal width."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A matrix and the names of its rows and columns.

    Parameters
    ----------
    shares
        float64 [R, C], 0 to 1; NaN is left blank.
    rows, columns
        R and C names.
    states
        int [R, C], 0 or 1 + the number of a state in ``state_names``, which takes the colour's place; None: no states.
    state_names
        (class of its colour, name) of each state.
    """

    shares: NDArray[np.float64]
    rows: Sequence[str]
    columns: Sequence[str]
    states: NDArray[np.int64] | None = None
    state_names: Sequence[tuple[str, str]] = ()


def heat_map(
    title: str,
    field: Field,
    *,
    description: str,
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    y_label: str = "",
    unit: str = "observed",
    height: int,
    table: DataTable | None = None,
    note: str = "",
    ramp: str = "",
) -> Plot:
    """Draw a field.

    Parameters
    ----------
    title, description, x_ticks, y_ticks, y_label, height, table, note, ramp
        As of a :class:`Plot`.
    field
        The matrix.
    unit
        Word after a cell's per cent.
    """
    number_rows, number_columns = field.shares.shape
    names = [f"cell l{level}" for level in range(NUM_LEVELS + 1)] + [f"cell {kind}" for kind, _ in field.state_names]
    classes = _classes(field)
    marks = Markup()
    for number, name in enumerate(names):
        marks += path(name, _runs(classes == number))
    readout = {
        "data-rows": json.dumps(list(field.rows), ensure_ascii=False),
        "data-columns": json.dumps(list(field.columns), ensure_ascii=False),
        "data-cells": encode_cells(field.shares),
        "data-unit": unit,
    }
    if field.states is not None:
        readout["data-states"] = "".join(_DIGITS[s] for s in field.states.ravel().tolist())
        readout["data-state-names"] = json.dumps([name for _, name in field.state_names], ensure_ascii=False)
    return Plot(
        title=title,
        description=description,
        marks=marks,
        x_ticks=x_ticks,
        y_ticks=y_ticks,
        y_label=y_label,
        height=height,
        table=table,
        note=note,
        ramp=ramp,
        sheet=(number_columns, number_rows),
        readout=readout,
    )


def encode_cells(shares: NDArray[np.float64]) -> str:
    """Return two signs per cell, row by row: thousandths in base 36, ``--`` where there is none."""
    thousandths = np.rint(1000 * np.nan_to_num(shares, nan=-1.0)).astype(np.int64).ravel()
    # Only nothing is 0 and only all is 1000, as `share` has it.
    thousandths = np.where((shares.ravel() > 0) & (thousandths == 0), 1, thousandths)
    thousandths = np.where((shares.ravel() < 1) & (thousandths == 1000), 999, thousandths)
    return "".join("--" if n < 0 else _DIGITS[n // 36] + _DIGITS[n % 36] for n in thousandths.tolist())


def _classes(field: Field) -> NDArray[np.int64]:
    """Return the class of each cell: a level, or a state after the levels; -1 is blank."""
    part = np.nan_to_num(field.shares, nan=0.0)
    level = np.clip(1 + np.floor(part * (NUM_LEVELS - 1)), 1, NUM_LEVELS - 1).astype(np.int64)
    level[part <= 0] = 0
    level[part >= 1] = NUM_LEVELS
    level[np.isnan(field.shares)] = -1
    return level if field.states is None else np.where(field.states > 0, NUM_LEVELS + field.states, level)


def _runs(where: NDArray[np.bool_]) -> str:
    """Return path commands that cover cells, a rectangle per unbroken stretch of a row."""
    padded = np.zeros((where.shape[0], where.shape[1] + 2), dtype=np.int8)
    padded[:, 1:-1] = where
    change = np.diff(padded, axis=1)
    row, start = np.nonzero(change == 1)
    stop = np.nonzero(change == -1)[1]
    return "".join(
        f"M{a} {r}h{b - a}v1H{a}z" for r, a, b in zip(row.tolist(), start.tolist(), stop.tolist(), strict=True)
    )


def shares_table(caption: str, corner: str, field: Field, *, most_rows: int) -> DataTable:
    """Return a field as text, neighbouring rows averaged where there are more than ``most_rows``."""
    rows = np.array_split(np.arange(len(field.rows)), min(most_rows, len(field.rows)))
    body = []
    for block in rows:
        named = field.rows[block[0]] if len(block) == 1 else f"{field.rows[block[0]]} to {field.rows[block[-1]]}"
        part = field.shares[block]
        seen = np.isfinite(part)
        mean = np.where(seen.any(axis=0), np.nan_to_num(part).sum(axis=0) / np.maximum(seen.sum(axis=0), 1), np.nan)
        body.append((named, *(share(float(m)) for m in mean)))
    return DataTable(caption=caption, header=(corner, *field.columns), rows=body)
