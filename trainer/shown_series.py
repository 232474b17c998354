"""Which basins stand for a data set, the best, the median and the worst, and their series from the predictions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.trainer.run_folder import read_csv
from headrace.trainer.time_axis import TimeAxis


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSeries:
    """Observed and simulated series of one basin.

    Parameters
    ----------
    place
        ``best``, ``median`` or ``worst``.
    dataset_id, basin_id, target, unit
        Whose; the unit is '' where unknown.
    nse
        Over the whole split.
    dates
        datetime64[s] [T].
    observed, simulated
        float32 [T], in the unit, NaN where there is none.
    """

    place: str
    dataset_id: str
    basin_id: str
    target: str
    unit: str
    nse: float
    dates: NDArray[np.datetime64]
    observed: NDArray[np.float32]
    simulated: NDArray[np.float32]


def shown_series(evaluation: Path, *, max_steps: int, most: int | None = None) -> Iterator[list[ShownSeries]]:
    """Yield the basins to show of each data set and target, best first; none of those without a defined NSE.

    Parameters
    ----------
    evaluation
        Folder with ``metrics.csv`` and ``predictions.zarr``.
    max_steps
        Longest stretch, from the first predicted step on.
    most
        Data sets and targets to take at most; None takes all.
    """
    rows = [row for row in read_csv(evaluation / "metrics.csv") if row["scope"] == "basin" and row["nse"]]
    store = zarr.open_group(evaluation / "predictions.zarr", mode="r")
    pairs = list(dict.fromkeys((row["dataset_id"], row["target"]) for row in rows))
    for dataset_id, target in pairs[:most]:
        group = store[dataset_id]
        assert isinstance(group, zarr.Group)
        row_of = {str(name): row for row, name in enumerate(_values(group, "basin"))}
        unit = group[f"{target}_obs"].attrs.get("units", "")
        chosen = [row for row in rows if (row["dataset_id"], row["target"]) == (dataset_id, target)]
        found = []
        for place, row in _examples(chosen):
            dates, observed, simulated = _series(group, target, row_of[row["basin_id"]], max_steps)
            found.append(
                ShownSeries(
                    place=place,
                    dataset_id=dataset_id,
                    basin_id=row["basin_id"],
                    target=target,
                    unit=str(unit),
                    nse=float(row["nse"]),
                    dates=dates,
                    observed=observed,
                    simulated=simulated,
                )
            )
        yield found


def _examples(rows: Sequence[dict[str, str]]) -> list[tuple[str, dict[str, str]]]:
    """Return the best, the median and the worst basin by NSE, each once."""
    ranked = sorted(rows, key=lambda row: -float(row["nse"]))
    # With fewer than three basins a later name takes an earlier one's place.
    distinct = {len(ranked) // 2: "median", len(ranked) - 1: "worst", 0: "best"}
    return [(name, ranked[place]) for place, name in sorted(distinct.items())]


def _series(
    group: zarr.Group, target: str, row: int, max_steps: int
) -> tuple[NDArray[np.datetime64], NDArray[np.float32], NDArray[np.float32]]:
    simulated, observed = (_values(group, f"{target}_{kind}", row).astype(np.float32) for kind in ("sim", "obs"))
    predicted = np.flatnonzero(~np.isnan(simulated))
    steps = slice(predicted[0], min(predicted[-1] + 1, predicted[0] + max_steps))
    attributes = group["time"].attrs
    axis = TimeAxis(
        values=_values(group, "time").astype(np.int64),
        units=str(attributes["units"]),
        calendar=str(attributes["calendar"]),
    )
    return axis.dates(steps), observed[steps], simulated[steps]


def _values(group: zarr.Group, name: str, row: int | None = None) -> NDArray[np.generic]:
    array = group[name]
    assert isinstance(array, zarr.Array)
    return np.asarray(array[:] if row is None else array[row])
