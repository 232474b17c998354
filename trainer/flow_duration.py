"""Biases of the two ends of the flow duration curve: FHV of the floods, FLV of the low flows.

Yilmaz, Gupta and Wagener (2008), https://doi.org/10.1029/2007WR006716. Both sort the observed and the simulated values
each for itself, so they ask how often a flow occurs and not when.
"""

import numpy as np
from numpy.typing import NDArray

from headrace.trainer.scores import ZERO_MEAN_TOLERANCE

HIGH_SHARE = 0.02
LOW_SHARE = 0.3
FLOOR = 1e-6
"""What a flow of zero counts as where its logarithm is taken, in the values' units; neuralhydrology's choice too."""
_FLOAT32_EPSILON = float(np.finfo(np.float32).eps)


def high_flow_bias(obs: NDArray[np.float64], sim: NDArray[np.float64]) -> tuple[float, str]:
    """Return %BiasFHV, the relative error of the volume of the highest 2 % of the flows.

        FHV = 100 · Σ_h (Qs_h - Qo_h) / Σ_h Qo_h,      h = 1 … H, H = round(0.02 N), flows from the highest down

    Parameters
    ----------
    obs, sim
        float64 [N], N at least 1, same units, without NaN.

    Returns
    -------
    score : float
        In percent; NaN where undefined.
    note : str
        Why it is undefined: ``too_few_high_flows`` (fewer than 26 steps), ``zero_high_flows``; else empty.
    """
    number = _count(HIGH_SHARE, len(obs))
    if number == 0:
        return np.nan, "too_few_high_flows"
    observed, simulated = (np.sort(values)[-number:].sum() for values in (obs, sim))
    if abs(observed) <= number * ZERO_MEAN_TOLERANCE * max(np.abs(obs).max(), np.abs(sim).max()):
        return np.nan, "zero_high_flows"
    return 100.0 * float((simulated - observed) / observed), ""


def low_flow_bias(obs: NDArray[np.float64], sim: NDArray[np.float64]) -> tuple[float, str]:
    """Return %BiasFLV, the relative error of the long-term base flow as the lowest 30 % of the flows show it.

        FLV = -100 · (S - O) / O,      S = Σ_l (log Qs_l - log Qs_L),  O = Σ_l (log Qo_l - log Qo_L)

    with l = 1 … L over the lowest L = round(0.3 N) flows and Q_L the lowest of all. The logarithm of zero does not
    exist: flows up to :data:`FLOOR`, or that float32 cannot tell from zero, and simulated ones below count as that.

    Parameters
    ----------
    obs, sim
        float64 [N], N at least 1, same units, without NaN.

    Returns
    -------
    score : float
        In percent; NaN where undefined.
    note : str
        Why it is undefined: ``too_few_low_flows`` (fewer than 2 steps), ``negative_low_flows`` (observed),
        ``constant_low_flows`` (observed); else ``floored_low_flows`` where the score rests on :data:`FLOOR`, or empty.
    """
    number = _count(LOW_SHARE, len(obs))
    if number == 0:
        return np.nan, "too_few_low_flows"
    zero = _indistinguishable_from_zero(obs)
    low_obs, low_sim = (np.sort(values)[:number] for values in (obs, sim))
    if low_obs[0] < -zero:
        return np.nan, "negative_low_flows"
    observed, simulated = (np.log(np.where(low <= zero, FLOOR, low)) for low in (low_obs, low_sim))
    spread_obs, spread_sim = (float((logs - logs.min()).sum()) for logs in (observed, simulated))
    if spread_obs == 0:
        return np.nan, "constant_low_flows"
    floored = min(low_obs[0], low_sim[0]) <= zero
    return -100.0 * (spread_sim - spread_obs) / spread_obs, "floored_low_flows" if floored else ""


def _count(share: float, size: int) -> int:
    return int(np.round(share * size))


def _indistinguishable_from_zero(obs: NDArray[np.float64]) -> float:
    """Return the size up to which values are zero: they come back from normalisation in float32."""
    return max(FLOOR, _FLOAT32_EPSILON * float(np.abs(obs).max()))
