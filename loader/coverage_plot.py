"""The coverage of an index as a picture: basins from top to bottom, years from left to right, colour for what is there.

Every data set is a band of its own; small ones are drawn higher than their number of basins, so that they can be seen.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.loader.coverage_grid import CoverageGrid, coverage_grid
from headrace.picture_text import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headrace.loader.catalog import Index

_NAMED_BASINS = 40
"""Basins of a single data set that the axis names all."""
_LEAST_BAND = 0.2
"""Height of the smallest band in terms of the largest."""
_NO_RECORD = "0.85"


def plot_coverage(
    index: "Index", dataset: str | None = None, variable: str | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the observed share of each basin and year; see :meth:`headrace.loader.catalog.Index.plot_coverage`."""
    from matplotlib.ticker import MaxNLocator

    ids = index.dataset_ids if dataset is None else [dataset]
    grids = [coverage_grid(index, name, variable) for name in ids if dataset or _has(index, name, variable)]
    if not grids:  # no data set has the variable: say which ones there are
        grids = [coverage_grid(index, ids[0], variable)]
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=(8.0, 5.0), layout="constrained")
    years = np.arange(min(g.years[0] for g in grids), max(g.years[-1] for g in grids) + 1)
    edges = _bands(grids)
    for grid, top, bottom in zip(grids, edges[:-1], edges[1:], strict=True):
        extent = (years[0] - 0.5, years[-1] + 0.5, bottom, top)
        ax.imshow(_on_years(grid, years), extent=extent, aspect="auto", interpolation="nearest", vmin=0.0, vmax=1.0)
    ax.set_facecolor(_NO_RECORD)  # NaN lets it through
    ax.set_ylim(edges[-1], edges[0])
    ax.set_xlim(years[0] - 0.5, years[-1] + 0.5)
    for edge in edges[1:-1]:
        ax.axhline(edge, color="white", linewidth=1.5)
    _name_rows(ax, grids, edges)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("year")
    ax.set_title(literal(variable or "all inputs and targets"))
    ax.figure.colorbar(ax.images[0], ax=ax, label="observed share (grey: no record)")
    return ax


def _has(index: "Index", dataset_id: str, variable: str | None) -> bool:
    if variable is None:
        return True
    found: list[object] = index.sql(
        "SELECT 1 FROM variables WHERE dataset_id = $dataset_id AND variable = $variable AND present "
        "AND role <> 'static'",
        dataset_id=dataset_id,
        variable=variable,
    ).to_pylist()
    return len(found) > 0


def _bands(grids: Sequence[CoverageGrid]) -> NDArray[np.float64]:
    """Return where each data set's band begins and ends: float64 [D + 1]; of one data set, its basins."""
    sizes = np.array([len(grid.basin_ids) for grid in grids], dtype=np.float64)
    heights = np.maximum(sizes, _LEAST_BAND * sizes.max())
    return np.concatenate([[0.0], np.cumsum(heights)]) - 0.5


def _on_years(grid: CoverageGrid, years: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the shares float64 [R, years], NaN where the record has no step; one row a basin or bin of basins."""
    values = np.full((len(grid.share), len(years)), np.nan)
    values[:, grid.years - years[0]] = grid.share
    return values


def _name_rows(ax: "Axes", grids: Sequence[CoverageGrid], edges: NDArray[np.float64]) -> None:
    if len(grids) > 1:
        names = [literal(f"{g.dataset_id}\n{len(g.basin_ids):,} basins") for g in grids]
        ax.set_yticks((edges[:-1] + edges[1:]) / 2, names)
        return
    basin_ids = grids[0].basin_ids
    shown = np.arange(len(basin_ids)) if len(basin_ids) <= _NAMED_BASINS else np.linspace(0, len(basin_ids) - 1, 9)
    places = np.unique(np.rint(shown).astype(np.int64))
    ax.set_yticks(places, [literal(basin_ids[place]) for place in places], fontsize=7)
    ax.set_ylabel(literal(f"{grids[0].dataset_id}, {len(basin_ids):,} basins"))
