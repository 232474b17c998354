"""One pass over a split that leaves its scores and its predictions behind.

Both take the LAST target step of each window: with stride 1 every calendar step then counts exactly once, and the
scores are those of the series in ``predictions.zarr``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.schemas.errors import HeadraceError, describe
from headrace.trainer.comparable import without_mixed_units
from headrace.trainer.device import memory_named
from headrace.trainer.metrics import METRIC_COLUMNS, MetricRow, StreamingMetrics, format_row
from headrace.trainer.model import SequenceModel
from headrace.trainer.precision import Precision
from headrace.trainer.predictions import PredictionWriter
from headrace.trainer.protocols import Batch, Loader, Progress, Silent, TargetUnits, describe_windows
from headrace.trainer.run_folder import write_csv
from headrace.trainer.series_scores import score_predictions
from headrace.trainer.time_axis import TimeAxis


class PredictionError(HeadraceError):
    """The model predicted NaN or infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a pass left behind.

    Parameters
    ----------
    rows
        The metrics table.
    metrics
        Path of ``metrics.csv``.
    predictions
        Path of ``predictions.zarr``.
    num_windows
        Windows evaluated.
    """

    rows: list[MetricRow]
    metrics: Path
    predictions: Path
    num_windows: int


def evaluate(
    model: SequenceModel,
    loader: Loader,
    out_dir: str | Path,
    *,
    times: Mapping[str, TimeAxis],
    units: TargetUnits | None = None,
    precision: Precision | None = None,
    members: Mapping[str, Collection[str]] | None = None,
    progress: Progress | None = None,
    task: str = "evaluation",
) -> Evaluation:
    """Evaluate a model on a split, in memory that does not grow with it.

    Parameters
    ----------
    model
        On the device to compute on; left in training or evaluation mode as it was.
    loader
        Batches of the split; one whole pass is made. In the order (data set, basin, start), as ``shuffle=False``
        gives them, every chunk of the predictions is written once.
    out_dir
        Takes ``metrics.csv`` and ``predictions.zarr``; older ones are replaced.
    times
        Data set → the whole time axis of its store.
    units
        (Data set, target) → physical unit, for the predictions' attributes; where data sets differ, rows over all of
        them have no score in that unit.
    precision
        Format of the forward pass; None is float32.
    members
        Data set → basins of the split, the ones to score; None scores all that the loader knows.
    progress, task
        Who is told, and what the pass is called.

    Returns
    -------
    Evaluation
        Scores in physical units; columns of ``metrics.csv`` are the fields of :class:`MetricRow`, NaN an empty cell.

    Raises
    ------
    PredictionError
        A prediction is not finite.
    DeviceMemoryError
        The GPU has too little memory.
    ConfigError
        A time axis is missing or too short.
    """
    out_dir = Path(out_dir)
    device = next(model.parameters()).device
    progress, precision = progress or Silent(), precision or Precision(device.type)
    metrics = StreamingMetrics(loader.dataset_ids, loader.basin_ids, loader.y_names)
    predictions = out_dir / "predictions.zarr"
    num_windows = 0
    waited = 0.0
    was_training = model.training
    model.eval()
    loader.set_epoch(0)
    progress.begin(task, len(loader))
    clock = started = perf_counter()
    try:
        with (
            memory_named(task),
            torch.inference_mode(),
            PredictionWriter(predictions, loader.dataset_ids, loader.basin_ids, loader.y_names, times, units) as writer,
        ):
            for done, host_batch in enumerate(loader, start=1):
                waited += perf_counter() - clock
                batch = host_batch.to(device)
                with precision.autocast():
                    predicted = model.central(model(batch.x, batch.static, 1))
                _check_finite(loader, batch, predicted)
                dataset, basin, start = (t.cpu().numpy() for t in (batch.dataset, batch.basin, batch.start))
                obs = loader.denormalize(batch.y[:, -1:], batch)[:, 0].cpu().numpy()
                sim = loader.denormalize(predicted, batch)[:, 0].cpu().numpy()
                metrics.update(dataset, basin, obs, sim)
                writer.add(dataset, basin, start + (loader.window.length - 1), sim, obs)
                num_windows += len(start)
                clock = perf_counter()
                progress.update(
                    done,
                    loss=None,
                    samples_per_second=num_windows / (clock - started),
                    wait_share=waited / (clock - started),
                )
        # Behind the pass: the store has every series whole, in whatever order its steps came.
        series = score_predictions(predictions, loader.dataset_ids, loader.basin_ids, loader.y_names, times)
        rows = metrics.rows(series, None if members is None else _counted(loader, members))
        rows = without_mixed_units(rows, units, times)
        write_csv(out_dir / "metrics.csv", METRIC_COLUMNS, [format_row(row) for row in rows])
    finally:
        progress.finish()
        model.train(was_training)
    return Evaluation(rows=rows, metrics=out_dir / "metrics.csv", predictions=predictions, num_windows=num_windows)


def _counted(loader: Loader, members: Mapping[str, Collection[str]]) -> NDArray[np.bool_]:
    """Return bool [K], which of the loader's basins are members."""
    known = zip(loader.dataset_ids, loader.basin_ids, strict=True)
    return np.array([basin in members.get(name, ()) for name, ids in known for basin in ids], dtype=bool)


def _check_finite(loader: Loader, batch: Batch, predicted: torch.Tensor) -> None:
    bad = ~torch.isfinite(predicted).flatten(1).all(1)
    if not bool(bad.any()):
        return
    bad_input = ~(torch.isfinite(batch.x).flatten(1).all(1) & torch.isfinite(batch.static).all(1))
    raise PredictionError(
        describe(
            "a prediction is not finite",
            where=describe_windows(loader, batch, torch.nonzero(bad).flatten()),
            expected="finite predictions from finite inputs",
            got="inputs that are not finite" if bool((bad & bad_input).any()) else "weights that are not finite",
            fix="look at these basins' inputs, or use an earlier checkpoint",
        )
    )
