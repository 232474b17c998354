"""What the season alone would have predicted: the day-of-year climatology of every basin, scored on the test period.

Training observations come from a loader with one-step windows, test observations from the predictions of an evaluation,
so both are what the model saw.
"""

from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.demo.weather import day_of_year
from headrace.loader import Index, WindowLoader
from headrace.schemas.config import MissingConfig, SamplingConfig
from headrace.schemas.windows import WindowSpec
from headrace.trainer.baseline import climatology
from headrace.trainer.metrics import StreamingMetrics

_ONE_STEP = WindowSpec(hindcast_length=0, forecast_length=1, warmup_length=0)


def climatology_scores(index: Index, predictions: Path) -> dict[tuple[str, str], float]:
    """Return the median NSE of the climatology over the basins of each data set.

    Parameters
    ----------
    index
        The index of the run; its time axes are days.
    predictions
        ``predictions.zarr`` of an evaluation on the test split.

    Returns
    -------
    dict
        (data set, target) → NSE, over the observed steps that the model was scored on; the data set of all is ``""``.
    """
    store = zarr.open_group(predictions, mode="r")
    with WindowLoader(
        index, "train", window=_ONE_STEP, missing=MissingConfig(), sampling=SamplingConfig(), shuffle=False
    ) as loader:
        seen = _observations(loader, {name: len(index.times(name)) for name in loader.dataset_ids})
        metrics = StreamingMetrics(loader.dataset_ids, loader.basin_ids, loader.y_names)
        for number, name in enumerate(loader.dataset_ids):
            day = day_of_year(index.times(name).astype("datetime64[D]")).astype(np.int64)
            for v, target in enumerate(loader.y_names):
                simulated, observed = (_values(store, f"{name}/{target}_{kind}") for kind in ("sim", "obs"))
                for basin, past in enumerate(seen[name][:, :, v]):
                    steps = np.flatnonzero(~np.isnan(simulated[basin]))
                    expected = climatology(past, day, day[steps])
                    where = np.full(len(steps), number), np.full(len(steps), basin)
                    obs, sim = (np.full((len(steps), len(loader.y_names)), np.nan) for _ in range(2))
                    obs[:, v], sim[:, v] = observed[basin, steps], expected
                    metrics.update(*where, obs, sim)
    return {(row.dataset_id, row.target): row.nse for row in metrics.rows() if row.scope != "basin"}


def _observations(loader: WindowLoader, num_steps: dict[str, int]) -> dict[str, NDArray[np.float64]]:
    """Return per data set the training targets in their units, float64 [basins, steps, Vy], NaN where there is none."""
    shapes = zip(loader.dataset_ids, loader.basin_ids, strict=True)
    seen = [np.full((len(ids), num_steps[name], len(loader.y_names)), np.nan) for name, ids in shapes]
    for batch in loader:
        values = loader.denormalize(batch.y, batch)[:, 0].numpy()
        dataset, basin, step = batch.dataset.numpy(), batch.basin.numpy(), batch.start.numpy()
        for number in np.unique(dataset):
            mine = dataset == number
            seen[number][basin[mine], step[mine]] = values[mine]
    return dict(zip(loader.dataset_ids, seen, strict=True))


def _values(store: zarr.Group, path: str) -> NDArray[np.float64]:
    array = store[path]
    assert isinstance(array, zarr.Array)
    return np.asarray(array[:], dtype=np.float64)
