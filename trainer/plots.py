"""Pictures of a run: loss curve, distribution of NSE, hydrographs. Drawn by Agg, no display, no global state.

Colours are of Okabe and Ito's palette, which colour-blind readers tell apart.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.trainer.run_folder import read_csv
from headrace.trainer.time_axis import TimeAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, BLUE, ORANGE, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
SERIES_STYLES = tuple(
    (colour, line) for line in ("-", "--", ":") for colour in (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00")
)
CDF_LOWEST = -1.0
"""Where the NSE axis begins when some basin is below 0; the basins below this are counted in the legend."""


def plot_loss(metrics: Path, out: Path, loss_name: str = "loss") -> Path:
    """Draw the loss, and the median NSE where there was validation, over the epochs.

    Parameters
    ----------
    metrics
        A run's ``metrics.csv``.
    out
        The PNG to write.
    loss_name
        What the loss is called on its axis.
    """
    rows = read_csv(metrics)
    epoch = _column(rows, "epoch")
    validated = any(row["valid_loss"] for row in rows)
    figure = _figure(width=7.0, height=6.0 if validated else 3.5)
    axes = figure.subplots(2 if validated else 1, sharex=True, squeeze=False)[:, 0]
    axes[0].plot(epoch, _column(rows, "train_loss"), color=BLUE, marker="o", markersize=3, label="training")
    if validated:
        axes[0].plot(epoch, _column(rows, "valid_loss"), color=ORANGE, marker="s", markersize=3, label="validation")
        axes[1].plot(epoch, _column(rows, "valid_nse_median"), color=ORANGE, marker="s", markersize=3)
        axes[1].set_ylabel("median NSE over basins (–)")
    axes[0].set_ylabel(f"{loss_name} (normalised units)")
    axes[0].legend()
    axes[-1].set_xlabel("epoch")
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    return _save(figure, out)


def plot_nse_cdf(metrics: Path, out: Path) -> Path:
    """Draw the share of basins with at most a given NSE, a line per data set and target.

    Parameters
    ----------
    metrics
        An evaluation's ``metrics.csv``.
    out
        The PNG to write.
    """
    rows = [row for row in read_csv(metrics) if row["scope"] == "basin" and row["nse"]]
    figure = _figure(width=7.0, height=4.5)
    axes = figure.subplots()
    targets = {row["target"] for row in rows}
    series = sorted({(row["dataset_id"], row["target"]) for row in rows})
    for i, (dataset_id, target) in enumerate(series):
        chosen = [row for row in rows if (row["dataset_id"], row["target"]) == (dataset_id, target)]
        nse = np.sort(_column(chosen, "nse"))
        name = dataset_id if len(targets) == 1 else f"{dataset_id}, {target}"
        below = int((nse < CDF_LOWEST).sum())
        label = f"{name}: {len(nse)} basins, median {np.median(nse):.2f}"
        colour, line = SERIES_STYLES[i % len(SERIES_STYLES)]
        axes.step(
            np.concatenate([[min(CDF_LOWEST, nse[0])], nse]),
            np.arange(len(nse) + 1) / len(nse),
            where="post",
            color=colour,
            linestyle=line,
            label=f"{label}, {below} below {CDF_LOWEST:g}" if below else label,
        )
    axes.set_xlim(0.0 if all(float(row["nse"]) >= 0 for row in rows) else CDF_LOWEST, 1.0)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("NSE (–)")
    axes.set_ylabel("share of basins (–)")
    if series:
        axes.legend(loc="upper left")
    else:
        axes.text(0.5, 0.5, "NSE is defined for no basin", ha="center", transform=axes.transAxes)
    return _save(figure, out)


def plot_hydrographs(
    evaluation: Path, out_dir: Path, units: Mapping[str, str] | None = None, max_steps: int = 1095
) -> list[Path]:
    """Draw the observed and simulated series of the best, median and worst basin of each data set and target.

    Parameters
    ----------
    evaluation
        Folder of an evaluation, with ``metrics.csv`` and ``predictions.zarr``.
    out_dir
        Takes ``hydrographs_<data set>_<target>.png``.
    units
        Target → unit; where absent the predictions' attribute.
    max_steps
        Longest stretch to draw, from the first predicted step on.

    Returns
    -------
    list of Path
        The PNGs; none for a data set without a defined NSE.
    """
    rows = [row for row in read_csv(evaluation / "metrics.csv") if row["scope"] == "basin" and row["nse"]]
    store = zarr.open_group(evaluation / "predictions.zarr", mode="r")
    written = []
    for dataset_id, target in dict.fromkeys((row["dataset_id"], row["target"]) for row in rows):
        chosen = [row for row in rows if (row["dataset_id"], row["target"]) == (dataset_id, target)]
        ranked = sorted(chosen, key=lambda row: -float(row["nse"]))
        group = store[dataset_id]
        assert isinstance(group, zarr.Group)
        unit = (units or {}).get(target) or group[f"{target}_obs"].attrs.get("units")
        # With fewer than three basins a later name takes an earlier one's place, and no basin is drawn twice.
        distinct = {len(ranked) // 2: "median", len(ranked) - 1: "worst", 0: "best"}
        figure = _figure(width=9.0, height=0.6 + 2.4 * len(distinct))
        axes = figure.subplots(len(distinct), squeeze=False)[:, 0]
        for panel, (place, name) in zip(axes, sorted(distinct.items()), strict=True):
            row = ranked[place]
            _draw_hydrograph(panel, group, row["basin_id"], target, max_steps)
            panel.set_title(f"{name}: {row['basin_id']}, NSE {float(row['nse']):.2f}", loc="left", fontsize=10)
            panel.set_ylabel(f"{target}\n({unit or 'unit unknown'})")
        axes[0].legend(loc="upper right", ncols=2)
        figure.suptitle(dataset_id)
        written.append(_save(figure, out_dir / f"hydrographs_{_file_name(dataset_id)}_{_file_name(target)}.png"))
    return written


def _draw_hydrograph(axes: "Axes", group: zarr.Group, basin_id: str, target: str, max_steps: int) -> None:
    row = [str(name) for name in _array(group, "basin")].index(basin_id)
    sim = _array(group, f"{target}_sim", row)
    obs = _array(group, f"{target}_obs", row)
    predicted = np.flatnonzero(~np.isnan(sim))
    steps = slice(predicted[0], min(predicted[-1] + 1, predicted[0] + max_steps))
    attributes = group["time"].attrs
    axis = TimeAxis(
        values=_array(group, "time").astype(np.int64),
        units=str(attributes["units"]),
        calendar=str(attributes["calendar"]),
    )
    dates = axis.dates(steps)
    axes.plot(dates, obs[steps], color=BLACK, linewidth=1.0, label="observed")
    axes.plot(dates, sim[steps], color=ORANGE, linewidth=1.0, linestyle="--", label="simulated")
    axes.set_xlim(dates[0], dates[-1] if len(dates) > 1 else dates[0] + 1)


def _array(group: zarr.Group, name: str, row: int | None = None) -> NDArray[np.generic]:
    array = group[name]
    assert isinstance(array, zarr.Array)
    return np.asarray(array[:] if row is None else array[row])


def _column(rows: list[dict[str, str]], name: str) -> NDArray[np.float64]:
    return np.array([float(row[name]) if row[name] else np.nan for row in rows])


def _file_name(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in text)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: "Figure", out: Path) -> Path:
    for axes in figure.axes:
        axes.grid(visible=True, alpha=0.3)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130)
    return out
