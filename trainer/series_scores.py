"""Scores that need a whole series at once: FHV, FLV and peak timing, from the predictions of an evaluation.

The store is read a few rows at a time (one chunk of basins), so memory depends on the length of the series and not on
how many there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.trainer.flow_duration import high_flow_bias, low_flow_bias
from headrace.trainer.peak_timing import peak_timing_error, search_window
from headrace.trainer.time_axis import TimeAxis

SERIES_SCORE_NAMES = ("fhv", "flv", "peak_timing")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesScores:
    """Scores of N series; NaN where undefined.

    Parameters
    ----------
    fhv, flv, peak_timing
        float64 [N]: percent, percent, steps.
    note
        N texts: reasons and remarks joined by ``;``, see the functions that compute the scores. Empty for a series
        without observations, which every other score says too.
    """

    fhv: NDArray[np.float64]
    flv: NDArray[np.float64]
    peak_timing: NDArray[np.float64]
    note: list[str]

    @classmethod
    def undefined(cls, size: int) -> "SeriesScores":
        """Return ``size`` series of which nothing is known."""
        return cls(
            fhv=np.full(size, np.nan), flv=np.full(size, np.nan), peak_timing=np.full(size, np.nan), note=[""] * size
        )

    def fill(self, place: int, obs: NDArray[np.float64], sim: NDArray[np.float64], axis: "StepAxis") -> None:
        """Score one series.

        Parameters
        ----------
        place
            Which of the N it is.
        obs, sim
            float64 [T], same units; a step where either is NaN does not count.
        axis
            The T steps.
        """
        seen = ~(np.isnan(obs) | np.isnan(sim))
        if not seen.any():
            return
        obs, sim = obs[seen], sim[seen]
        self.fhv[place], high = high_flow_bias(obs, sim)
        self.flv[place], low = low_flow_bias(obs, sim)
        self.peak_timing[place], peaks = peak_timing_error(obs, sim, axis.tick[seen], axis.window)
        self.note[place] = ";".join(filter(None, (high, low, peaks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAxis:
    """What peak timing asks of a time axis.

    Parameters
    ----------
    tick
        int64 [T], number of each step, gaps of the axis included.
    window
        Steps on either side of an observed peak.
    """

    tick: NDArray[np.int64]
    window: int

    @classmethod
    def of(cls, time: TimeAxis) -> "StepAxis":
        """Return that of a store's axis."""
        return cls(tick=time.ticks(), window=search_window(time.step_seconds()))


def score_predictions(
    store: Path,
    dataset_ids: Sequence[str],
    basin_ids: Sequence[Sequence[str]],
    y_names: Sequence[str],
    times: Mapping[str, TimeAxis],
) -> SeriesScores:
    """Score every series of ``predictions.zarr``.

    Parameters
    ----------
    store
        As :class:`~headrace.trainer.predictions.PredictionWriter` leaves it.
    dataset_ids, basin_ids, y_names
        What it was written for; series are numbered data set by data set, basin by basin, target by target.
    times
        Data set → its time axis.

    Returns
    -------
    SeriesScores
        Of K · Vy series.
    """
    root = zarr.open_group(store, mode="r")
    scores = SeriesScores.undefined(len(y_names) * sum(len(ids) for ids in basin_ids))
    first_basin = 0
    for name, ids in zip(dataset_ids, basin_ids, strict=True):
        axis = StepAxis.of(times[name])
        for v, target in enumerate(y_names):
            simulated, observed = _array(root, f"{name}/{target}_sim"), _array(root, f"{name}/{target}_obs")
            rows = simulated.chunks[0]
            for start in range(0, len(ids), rows):
                block = slice(start, start + rows)
                pairs = zip(np.asarray(observed[block]), np.asarray(simulated[block]), strict=True)
                for row, (obs, sim) in enumerate(pairs, start=first_basin + start):
                    scores.fill(row * len(y_names) + v, obs.astype(np.float64), sim.astype(np.float64), axis)
        first_basin += len(ids)
    return scores


def _array(root: zarr.Group, path: str) -> zarr.Array[Any]:
    array = root[path]
    assert isinstance(array, zarr.Array)
    return array
