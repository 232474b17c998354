"""NSE, KGE and its parts, RMSE and bias of series of which only moments are kept.

Formulas, with o observed, s simulated over the observed steps, μ mean, σ population std:

    NSE    1 - Σ(s - o)² / Σ(o - μ_o)²                          Nash and Sutcliffe (1970), 10.1016/0022-1694(70)90255-6
    KGE    1 - √((r - 1)² + (α - 1)² + (β - 1)²)                 Gupta et al. (2009), 10.1016/j.jhydrol.2009.08.003
           r = Pearson's correlation, α = σ_s / σ_o, β = μ_s / μ_o
    RMSE   √(mean (s - o)²)            bias  μ_s - μ_o            pbias  100 Σ(s - o) / Σo, percent
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.trainer.pair_moments import PairMoments

ZERO_MEAN_TOLERANCE = 1e-6
"""A mean below this share of the largest magnitude is zero: values come back from float32 normalisation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of N series; NaN where undefined, and ``note`` says why.

    Parameters
    ----------
    count
        int64 [N], observed steps.
    nse, kge, kge_r, kge_alpha, kge_beta, rmse, bias, pbias
        float64 [N]. ``rmse`` and ``bias`` in the values' units, ``pbias`` in percent, the rest without unit.
    note
        N texts: empty, or reasons joined by ``;``: ``no_observations``, ``constant_observations``,
        ``constant_simulation``, ``zero_mean_observations``.
    """

    count: NDArray[np.int64]
    nse: NDArray[np.float64]
    kge: NDArray[np.float64]
    kge_r: NDArray[np.float64]
    kge_alpha: NDArray[np.float64]
    kge_beta: NDArray[np.float64]
    rmse: NDArray[np.float64]
    bias: NDArray[np.float64]
    pbias: NDArray[np.float64]
    note: list[str]


def compute_scores(moments: PairMoments) -> Scores:
    """Return the scores that follow from moments."""
    empty = moments.count == 0
    flat_obs = ~empty & (moments.obs_low == moments.obs_high)
    flat_sim = ~empty & (moments.sim_low == moments.sim_high)
    extremes = (moments.obs_low, moments.obs_high, moments.sim_low, moments.sim_high)
    magnitude = np.max([np.abs(np.where(empty, 0.0, values)) for values in extremes], axis=0)
    zero_mean = ~empty & (np.abs(moments.obs_mean) <= ZERO_MEAN_TOLERANCE * magnitude)

    def ratio(
        above: NDArray[np.float64], below: NDArray[np.float64], undefined: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        return np.where(undefined, np.nan, above / np.where(undefined, 1.0, below))

    no_spread = empty | flat_obs
    nse = 1.0 - ratio(moments.squared_error, moments.obs_m2, no_spread)
    r = ratio(moments.co_moment, np.sqrt(moments.obs_m2 * moments.sim_m2), no_spread | flat_sim)
    # A constant simulation has α = 0 exactly, whatever rounding left in its sum of squares.
    alpha = ratio(np.sqrt(np.where(flat_sim, 0.0, moments.sim_m2)), np.sqrt(moments.obs_m2), no_spread)
    beta = ratio(moments.sim_mean, moments.obs_mean, empty | zero_mean)
    bias = np.where(empty, np.nan, moments.sim_mean - moments.obs_mean)
    reasons = {
        "no_observations": empty,
        "constant_observations": flat_obs,
        "constant_simulation": flat_sim,
        "zero_mean_observations": zero_mean,
    }
    note = [""] * len(moments.count)
    for reason, holds in reasons.items():
        for i in np.flatnonzero(holds):
            note[i] = f"{note[i]};{reason}" if note[i] else reason
    return Scores(
        count=moments.count,
        nse=nse,
        kge=1.0 - np.sqrt((r - 1.0) ** 2 + (alpha - 1.0) ** 2 + (beta - 1.0) ** 2),
        kge_r=r,
        kge_alpha=alpha,
        kge_beta=beta,
        rmse=np.sqrt(ratio(moments.squared_error, moments.count.astype(np.float64), empty)),
        bias=bias,
        pbias=100.0 * ratio(moments.sim_mean - moments.obs_mean, moments.obs_mean, empty | zero_mean),
        note=note,
    )
