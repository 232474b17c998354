"""How far simulated floods come before or after the observed ones.

Kratzert, Klotz, Hochreiter and Nearing (2021), https://doi.org/10.5194/hess-25-2685-2021, appendix; as
neuralhydrology computes it, which gives the published numbers.
"""

import numpy as np
from numpy.typing import NDArray

from headrace.trainer.peaks import find_peaks

PEAK_DISTANCE = 100
"""Least number of steps between two observed peaks."""
_HALF_DAY_SECONDS = 43_200.0
_LEAST_WINDOW = 3


def search_window(step_seconds: float) -> int:
    """Return how many steps before and after an observed peak its simulated one is looked for: 3, or half a day."""
    return max(int(_HALF_DAY_SECONDS / step_seconds), _LEAST_WINDOW)


def peak_timing_error(
    obs: NDArray[np.float64], sim: NDArray[np.float64], tick: NDArray[np.int64], window: int
) -> tuple[float, str]:
    """Return the mean absolute difference between the times of observed and simulated peaks.

    Observed peaks are at least :data:`PEAK_DISTANCE` observed steps apart and rise by at least the observations' std.
    Where the simulation has a local maximum at the very step, the difference is 0; otherwise its peak is the (first)
    highest simulated value within ``window`` steps on either side. Peaks whose surroundings are cut by an end of the
    series or by missing steps do not count.

    Parameters
    ----------
    obs, sim
        float64 [N], same units, observed steps only, without NaN.
    tick
        int64 [N], ascending: number of each step on the time axis, gaps included.
    window
        Steps on either side, at least 1.

    Returns
    -------
    score : float
        In steps; NaN where undefined.
    note : str
        ``no_peaks`` where it is undefined, else empty.
    """
    errors = []
    for peak in find_peaks(obs, PEAK_DISTANCE, float(obs.std())).tolist():
        first, last = peak - window, peak + window
        if first < 0 or last >= len(obs) or tick[last] - tick[first] != 2 * window:
            continue
        if sim[peak] > max(sim[peak - 1], sim[peak + 1]):
            errors.append(0)
        else:
            errors.append(abs(int(sim[first : last + 1].argmax()) - window))
    return (float(np.mean(errors)), "") if errors else (np.nan, "no_peaks")
