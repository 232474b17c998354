"""Pictures of a run: loss curve, distribution of NSE, hydrographs. Drawn by Agg, no display, no global state.

Colours are of Okabe and Ito's palette, which colour-blind readers tell apart.
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.picture_text import literal
from headrace.trainer.run_folder import read_csv
from headrace.trainer.shown_series import ShownSeries, shown_series

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
        basins = "1 basin" if len(nse) == 1 else f"{len(nse):,} basins"
        label = f"{literal(name)}: {basins}, median {np.median(nse):.2f}"
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


def plot_hydrographs(evaluation: Path, out_dir: Path, max_steps: int = 1095) -> list[Path]:
    """Draw the observed and simulated series of the best, median and worst basin of each data set and target.

    Parameters
    ----------
    evaluation
        Folder of an evaluation, with ``metrics.csv`` and ``predictions.zarr``.
    out_dir
        Takes ``hydrographs_<data set>_<target>.png``.
    max_steps
        Longest stretch to draw, from the first predicted step on.

    Returns
    -------
    list of Path
        The PNGs; none for a data set without a defined NSE.
    """
    written = []
    for shown in shown_series(evaluation, max_steps=max_steps):
        figure = _figure(width=9.0, height=0.6 + 2.4 * len(shown))
        axes = figure.subplots(len(shown), squeeze=False)[:, 0]
        for panel, series in zip(axes, shown, strict=True):
            _draw_hydrograph(panel, series)
        axes[0].legend(loc="upper right", ncols=2)
        first = shown[0]
        figure.suptitle(literal(first.dataset_id))
        name = f"hydrographs_{_file_name(first.dataset_id)}_{_file_name(first.target)}.png"
        written.append(_save(figure, out_dir / name))
    return written


def _draw_hydrograph(axes: "Axes", series: ShownSeries) -> None:
    dates = series.dates
    axes.plot(dates, series.observed, color=BLACK, linewidth=1.0, label="observed")
    axes.plot(dates, series.simulated, color=ORANGE, linewidth=1.0, linestyle="--", label="simulated")
    axes.set_xlim(dates[0], dates[-1] if len(dates) > 1 else dates[0] + 1)
    axes.set_title(f"{series.place}: {literal(series.basin_id)}, NSE {series.nse:.2f}", loc="left", fontsize=10)
    axes.set_ylabel(literal(f"{series.target}\n({series.unit or 'unit unknown'})"))


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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # an id in a script that the font lacks: boxes will do
        figure.savefig(out, dpi=130)
    return out
