"""Joint moments of observed and simulated series, kept for many series at once and merged batch by batch.

Ten numbers per series, whatever its length, from which NSE, KGE, RMSE and bias follow. Merging is that of Chan, Golub
and LeVeque (1983), "Algorithms for computing the sample variance", in float64, never E[x²] - mean².
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMoments:
    """Moments of N series, struct of arrays.

    Parameters
    ----------
    count
        int64 [N], steps that were observed.
    obs_mean, sim_mean
        float64 [N], units of the values; 0 where count is 0.
    obs_m2, sim_m2, co_moment
        float64 [N], sums of squared deviations and of their product, units².
    squared_error
        float64 [N], sum of (simulated - observed)², units².
    obs_low, obs_high, sim_low, sim_high
        float64 [N], extremes, so that a constant series is known exactly; inf and -inf where count is 0.
    """

    count: NDArray[np.int64]
    obs_mean: NDArray[np.float64]
    sim_mean: NDArray[np.float64]
    obs_m2: NDArray[np.float64]
    sim_m2: NDArray[np.float64]
    co_moment: NDArray[np.float64]
    squared_error: NDArray[np.float64]
    obs_low: NDArray[np.float64]
    obs_high: NDArray[np.float64]
    sim_low: NDArray[np.float64]
    sim_high: NDArray[np.float64]

    @classmethod
    def empty(cls, size: int) -> "PairMoments":
        """Return ``size`` series without steps."""
        return cls(
            count=np.zeros(size, np.int64),
            obs_mean=np.zeros(size),
            sim_mean=np.zeros(size),
            obs_m2=np.zeros(size),
            sim_m2=np.zeros(size),
            co_moment=np.zeros(size),
            squared_error=np.zeros(size),
            obs_low=np.full(size, np.inf),
            obs_high=np.full(size, -np.inf),
            sim_low=np.full(size, np.inf),
            sim_high=np.full(size, -np.inf),
        )

    @classmethod
    def of_steps(cls, obs: NDArray[np.float64], sim: NDArray[np.float64]) -> "PairMoments":
        """Return one series per step: float64 [N] observed and simulated, without NaN."""
        zero = np.zeros(len(obs))
        return cls(
            count=np.ones(len(obs), np.int64),
            obs_mean=obs,
            sim_mean=sim,
            obs_m2=zero,
            sim_m2=zero,
            co_moment=zero,
            squared_error=(sim - obs) ** 2,
            obs_low=obs,
            obs_high=obs,
            sim_low=sim,
            sim_high=sim,
        )

    def grouped(self, group: NDArray[np.int64], num_groups: int) -> "PairMoments":
        """Merge the series of each group into one.

        Parameters
        ----------
        group
            int64 [N], the group of each series, in [0, num_groups).
        num_groups
            Number of groups; one may be empty.
        """

        def total(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.bincount(group, weights=values, minlength=num_groups).astype(np.float64, copy=False)

        def extreme(ufunc: np.ufunc, values: NDArray[np.float64], start: float) -> NDArray[np.float64]:
            out = np.full(num_groups, start)
            ufunc.at(out, group, values)
            return out

        count = total(self.count.astype(np.float64))
        safe = np.maximum(count, 1.0)
        obs_mean = total(self.count * self.obs_mean) / safe
        sim_mean = total(self.count * self.sim_mean) / safe
        obs_shift = self.obs_mean - obs_mean[group]
        sim_shift = self.sim_mean - sim_mean[group]
        return PairMoments(
            count=count.astype(np.int64),
            obs_mean=obs_mean,
            sim_mean=sim_mean,
            obs_m2=total(self.obs_m2 + self.count * obs_shift**2),
            sim_m2=total(self.sim_m2 + self.count * sim_shift**2),
            co_moment=total(self.co_moment + self.count * obs_shift * sim_shift),
            squared_error=total(self.squared_error),
            obs_low=extreme(np.minimum, self.obs_low, np.inf),
            obs_high=extreme(np.maximum, self.obs_high, -np.inf),
            sim_low=extreme(np.minimum, self.sim_low, np.inf),
            sim_high=extreme(np.maximum, self.sim_high, -np.inf),
        )

    def add(self, series: NDArray[np.int64], obs: NDArray[np.float64], sim: NDArray[np.float64]) -> None:
        """Merge steps into their series, in place and without a loop over them.

        Parameters
        ----------
        series
            int64 [M], the series of each step, in [0, N); any order, any repetition.
        obs, sim
            float64 [M], observed and simulated; a step whose ``obs`` is NaN is skipped.
        """
        observed = ~np.isnan(obs)
        touched, group = np.unique(series[observed], return_inverse=True)
        new = PairMoments.of_steps(obs[observed], sim[observed]).grouped(group, len(touched))
        old_count = self.count[touched]
        count = old_count + new.count
        share = new.count / count
        obs_shift = new.obs_mean - self.obs_mean[touched]
        sim_shift = new.sim_mean - self.sim_mean[touched]
        between = old_count * share
        self.count[touched] = count
        self.obs_mean[touched] += obs_shift * share
        self.sim_mean[touched] += sim_shift * share
        self.obs_m2[touched] += new.obs_m2 + obs_shift**2 * between
        self.sim_m2[touched] += new.sim_m2 + sim_shift**2 * between
        self.co_moment[touched] += new.co_moment + obs_shift * sim_shift * between
        self.squared_error[touched] += new.squared_error
        self.obs_low[touched] = np.minimum(self.obs_low[touched], new.obs_low)
        self.obs_high[touched] = np.maximum(self.obs_high[touched], new.obs_high)
        self.sim_low[touched] = np.minimum(self.sim_low[touched], new.sim_low)
        self.sim_high[touched] = np.maximum(self.sim_high[touched], new.sim_high)
