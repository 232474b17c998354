"""NSE, KGE, RMSE and bias per basin and target, streamed: batches go in, a table comes out, no series is kept.

Formulas, with o observed, s simulated over the observed steps, μ mean, σ population std:

    NSE    1 - Σ(s - o)² / Σ(o - μ_o)²                          Nash and Sutcliffe (1970), 10.1016/0022-1694(70)90255-6
    KGE    1 - √((r - 1)² + (α - 1)² + (β - 1)²)                 Gupta et al. (2009), 10.1016/j.jhydrol.2009.08.003
           r = Pearson's correlation, α = σ_s / σ_o, β = μ_s / μ_o
    RMSE   √(mean (s - o)²)            bias  μ_s - μ_o            pbias  100 Σ(s - o) / Σo, percent
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

from headrace.trainer.pair_moments import PairMoments
from headrace.trainer.protocols import count_basins

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One row of the metrics table; the fields are its columns.

    ``scope`` is ``basin``, ``dataset`` or ``all``. A data set's or the whole's scores are medians over the basins for
    which they are defined, ``count`` is the sum of theirs, and ``nse_pooled`` is the NSE of all their steps taken as
    one series. ``note`` gives the reasons for what is undefined, with the number of basins where there are several.
    """

    scope: str
    dataset_id: str
    basin_id: str
    target: str
    count: int
    nse: float
    kge: float
    kge_r: float
    kge_alpha: float
    kge_beta: float
    rmse: float
    bias: float
    pbias: float
    nse_pooled: float
    note: str


METRIC_COLUMNS = tuple(field.name for field in fields(MetricRow))
SCORE_NAMES = ("nse", "kge", "kge_r", "kge_alpha", "kge_beta", "rmse", "bias", "pbias")


def median(values: NDArray[np.float64]) -> float:
    """Return the median of the values that are not NaN, NaN when there is none."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


class StreamingMetrics:
    """Scores of every basin and target, in memory that does not grow with the steps seen.

    Parameters
    ----------
    dataset_ids
        Ids of the D data sets.
    basin_ids
        Per data set, the ids of its basins.
    y_names
        Names of the Vy targets.
    """

    def __init__(self, dataset_ids: Sequence[str], basin_ids: Sequence[Sequence[str]], y_names: Sequence[str]) -> None:
        self._dataset_ids = dataset_ids
        self._basin_ids = basin_ids
        self._y_names = y_names
        self._first_basin = count_basins(basin_ids)
        # Series are basin-major: basin k's target v is series k · Vy + v.
        self.moments = PairMoments.empty(int(self._first_basin[-1]) * len(y_names))

    def update(
        self,
        dataset: NDArray[np.integer],
        basin: NDArray[np.integer],
        obs: NDArray[np.floating],
        sim: NDArray[np.floating],
    ) -> None:
        """Add one step of B windows.

        Parameters
        ----------
        dataset, basin
            int [B], positions in ``dataset_ids`` and in that data set's basins.
        obs, sim
            float [B, Vy], same units, NaN in ``obs`` = missing.
        """
        num_targets = len(self._y_names)
        first = (self._first_basin[dataset] + basin) * num_targets
        series = first[:, None] + np.arange(num_targets)
        self.moments.add(series.ravel(), obs.astype(np.float64).ravel(), sim.astype(np.float64).ravel())

    def basin_nse(self) -> NDArray[np.float64]:
        """Return float64 [K, Vy], the NSE of every basin, NaN where undefined."""
        return compute_scores(self.moments).nse.reshape(-1, len(self._y_names))

    def rows(self, members: NDArray[np.bool_] | None = None) -> list[MetricRow]:
        """Return the table: every basin, then every data set, then all, targets in their order within each.

        Parameters
        ----------
        members
            bool [K], basins that count; None counts all.
        """
        counted = np.ones(int(self._first_basin[-1]), dtype=bool) if members is None else members
        scores = compute_scores(self.moments)
        columns = {name: getattr(scores, name).tolist() for name in ("count", *SCORE_NAMES)}
        num_targets = len(self._y_names)
        basins = [(d, b) for d, ids in enumerate(self._basin_ids) for b in range(len(ids))]
        rows = [
            MetricRow(
                scope="basin",
                dataset_id=self._dataset_ids[d],
                basin_id=self._basin_ids[d][b],
                target=target,
                nse_pooled=float("nan"),
                note=scores.note[k * num_targets + v],
                **{name: values[k * num_targets + v] for name, values in columns.items()},
            )
            for k, (d, b) in enumerate(basins)
            if counted[k]
            for v, target in enumerate(self._y_names)
        ]
        owner = np.repeat(np.arange(len(self._dataset_ids)), np.diff(self._first_basin))
        rows += self._summary("dataset", scores, np.where(counted, owner, -1), list(self._dataset_ids))
        return rows + self._summary("all", scores, np.where(counted, 0, -1), [""])

    def _summary(
        self, scope: str, scores: Scores, group_of_basin: NDArray[np.int64], names: list[str]
    ) -> list[MetricRow]:
        num_targets = len(self._y_names)
        series_group = (group_of_basin[:, None] * num_targets + np.arange(num_targets)).ravel()
        series_group[np.repeat(group_of_basin < 0, num_targets)] = -1
        # A basin that is no member (group -1) was given no step, so that it adds nothing to whatever group.
        pooled = compute_scores(self.moments.grouped(np.maximum(series_group, 0), len(names) * num_targets))
        rows = []
        for group, name in enumerate(names):
            for v, target in enumerate(self._y_names):
                member = np.flatnonzero(series_group == group * num_targets + v)
                rows.append(
                    MetricRow(
                        scope=scope,
                        dataset_id=name,
                        basin_id="",
                        target=target,
                        count=int(scores.count[member].sum()),
                        nse_pooled=float(pooled.nse[group * num_targets + v]),
                        note=_tally([scores.note[i] for i in member]),
                        **{score: median(getattr(scores, score)[member]) for score in SCORE_NAMES},
                    )
                )
        return rows


def _tally(notes: list[str]) -> str:
    """Return ``reason: number of basins`` for every reason among the notes."""
    number: dict[str, int] = {}
    for note in notes:
        for reason in filter(None, note.split(";")):
            number[reason] = number.get(reason, 0) + 1
    return "; ".join(f"{reason}: {count}" for reason, count in number.items())


def format_cell(value: object) -> str:
    """Return a value as CSV text; NaN is an empty cell."""
    return "" if isinstance(value, float) and np.isnan(value) else str(value)


def format_row(row: MetricRow) -> list[str]:
    """Return the cells of a row, in the order of :data:`METRIC_COLUMNS`."""
    return [format_cell(value) for value in astuple(row)]
