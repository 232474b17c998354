"""Scores of every basin, data set and target: batches go in, a table comes out.

What moments tell (:mod:`headrace.trainer.scores`) is streamed, no series is kept. What needs a whole series
(:mod:`headrace.trainer.series_scores`) is handed in when the table is made.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

from headrace.trainer.pair_moments import PairMoments
from headrace.trainer.protocols import count_basins
from headrace.trainer.scores import compute_scores
from headrace.trainer.series_scores import SERIES_SCORE_NAMES, SeriesScores


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One row of the metrics table; the fields are its columns.

    ``scope`` is ``basin``, ``dataset`` or ``all``. A data set's or the whole's scores are medians over the basins for
    which they are defined, ``count`` is the sum of theirs, and ``nse_pooled`` is the NSE of all their steps taken as
    one series. ``note`` gives the reasons for what is undefined, and remarks on how a score came about, with the number
    of basins where there are several; docs/evaluation.md lists them.
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
    fhv: float
    flv: float
    peak_timing: float
    nse_pooled: float
    note: str


METRIC_COLUMNS = tuple(field.name for field in fields(MetricRow))
MOMENT_SCORE_NAMES = ("nse", "kge", "kge_r", "kge_alpha", "kge_beta", "rmse", "bias", "pbias")
SCORE_NAMES = (*MOMENT_SCORE_NAMES, *SERIES_SCORE_NAMES)


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

    def rows(self, series: SeriesScores | None = None, members: NDArray[np.bool_] | None = None) -> list[MetricRow]:
        """Return the table: every basin, then every data set, then all, targets in their order within each.

        Parameters
        ----------
        series
            What needs whole series, of K · Vy series, basin-major; None leaves these columns empty.
        members
            bool [K], basins that count; None counts all. A data set without any has no row.
        """
        counted = np.ones(int(self._first_basin[-1]), dtype=bool) if members is None else members
        columns, notes = self._columns(series)
        num_targets = len(self._y_names)
        basins = [(d, b) for d, ids in enumerate(self._basin_ids) for b in range(len(ids))]
        rows = [
            MetricRow(
                scope="basin",
                dataset_id=self._dataset_ids[d],
                basin_id=self._basin_ids[d][b],
                target=target,
                count=int(self.moments.count[k * num_targets + v]),
                nse_pooled=float("nan"),
                note=notes[k * num_targets + v],
                **{name: float(values[k * num_targets + v]) for name, values in columns.items()},
            )
            for k, (d, b) in enumerate(basins)
            if counted[k]
            for v, target in enumerate(self._y_names)
        ]
        owner = np.repeat(np.arange(len(self._dataset_ids)), np.diff(self._first_basin))
        rows += self._summary("dataset", columns, notes, np.where(counted, owner, -1), list(self._dataset_ids))
        return rows + self._summary("all", columns, notes, np.where(counted, 0, -1), [""])

    def _columns(self, series: SeriesScores | None) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
        """Return score → float64 [K · Vy], and as many notes."""
        scores = compute_scores(self.moments)
        series = SeriesScores.undefined(len(scores.note)) if series is None else series
        columns = {name: getattr(scores, name) for name in MOMENT_SCORE_NAMES}
        columns |= {name: getattr(series, name) for name in SERIES_SCORE_NAMES}
        notes = [";".join(filter(None, pair)) for pair in zip(scores.note, series.note, strict=True)]
        return columns, notes

    def _summary(
        self,
        scope: str,
        columns: dict[str, NDArray[np.float64]],
        notes: list[str],
        group_of_basin: NDArray[np.int64],
        names: list[str],
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
                if scope == "dataset" and not member.size:
                    continue  # no basin of it counts
                rows.append(
                    MetricRow(
                        scope=scope,
                        dataset_id=name,
                        basin_id="",
                        target=target,
                        count=int(self.moments.count[member].sum()),
                        nse_pooled=float(pooled.nse[group * num_targets + v]),
                        note=_tally([notes[i] for i in member]),
                        **{score: median(values[member]) for score, values in columns.items()},
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
