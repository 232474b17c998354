"""Series to score, random and awkward, made without NumPy's generators so that they never change with a version.

Floods rise in a day and fall over weeks; the simulation sees them a little late, damped and noisy.
"""

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.trainer.metrics import StreamingMetrics
from headrace.trainer.peak_timing import search_window
from headrace.trainer.series_scores import SeriesScores, StepAxis

STEP_SECONDS = {"1D": 86_400.0, "1h": 3_600.0, "15min": 900.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One observed and one simulated series; None is a missing value.

    ``skipped`` lists stretches ``[first, steps]``: before value ``first`` the time axis leaves out so many steps.
    """

    obs: list[float | None]
    sim: list[float | None]
    resolution: str = "1D"
    skipped: tuple[tuple[int, int], ...] = ()

    def question(self) -> dict[str, Any]:
        """Return it as neuralhydrology's program is asked about it."""
        return {"obs": self.obs, "sim": self.sim, "resolution": self.resolution, "skipped": list(self.skipped)}


def floods(seed: int, steps: int, base: float = 0.2, recession: float = 0.9) -> list[float]:
    """Return a positive series with a flood every three weeks or so."""
    draw, flow, values = random.Random(seed), 1.0, []
    for _ in range(steps):
        rain = -8.0 * math.log(1.0 - draw.random()) if draw.random() < 0.05 else 0.0
        flow = recession * flow + rain
        values.append(base + flow + 0.05 * draw.random())
    return values


def simulated(seed: int, obs: list[float], late: int = 1, noise: float = 0.4) -> list[float]:
    """Return what a middling model makes of it: damped, late, with errors."""
    draw = random.Random(seed)
    return [
        abs(0.1 + 0.8 * obs[max(t - late, 0)] + 0.1 * obs[t] + noise * (draw.random() - 0.5)) for t in range(len(obs))
    ]


def random_series(seed: int) -> Series:
    """Return a series whose length, step, delay, noise, missing values and gaps depend on the seed."""
    draw = random.Random(seed)
    steps = draw.randrange(60, 2500)
    true = floods(seed, steps, base=draw.choice([0.05, 0.2, 3.0]))
    obs: list[float | None] = [*true]
    sim: list[float | None] = [*simulated(seed + 1, true, late=draw.randrange(7), noise=3.0 * draw.random())]
    for _ in range(draw.randrange(4)):
        first = draw.randrange(steps)
        for t in range(first, min(first + draw.randrange(1, 40), steps)):
            (obs if draw.random() < 0.8 else sim)[t] = None
    skipped = tuple(sorted((draw.randrange(1, steps), draw.randrange(1, 30)) for _ in range(draw.randrange(3))))
    return Series(obs=obs, sim=sim, resolution=draw.choice(["1D", "1D", "1h", "15min"]), skipped=skipped)


def awkward_series() -> dict[str, Series]:
    """Return series by name, each with one thing that formulas disagree about or stumble over."""
    obs = floods(1, 800)
    sim = simulated(2, obs)
    # A tenth of the observed flows is zero, and more of the simulated ones lie below.
    least = sorted(obs)[80]
    dry, below = [max(v - least, 0.0) for v in obs], [v - 1.2 * least for v in sim]
    coarse = [float(round(v)) for v in obs]
    return {
        "perfect": Series(obs=[*obs], sim=[*obs]),
        "zero flows": Series(obs=[*dry], sim=[*below]),
        "equal heights and flat tops": Series(obs=[*coarse[:150]], sim=[float(round(v)) for v in sim[:150]]),
        "a flood on either edge": Series(obs=[9.0, *obs[:300], 90.0, 80.0], sim=[9.0, *sim[:300], 80.0, 90.0]),
        "floods at the edges of a gap": Series(obs=[*obs], sim=[*sim], skipped=((400, 3),)),
        "every fourth step missing": Series(obs=[None if t % 4 == 0 else v for t, v in enumerate(obs)], sim=[*sim]),
        "no flood": Series(obs=[5.0 - t / 100 for t in range(300)], sim=[5.1 - t / 99 for t in range(300)]),
        "around zero": Series(obs=[v - 4.0 for v in obs], sim=[v - 4.1 for v in sim]),
        "25 steps": Series(obs=[*obs[:25]], sim=[*sim[:25]]),
        "26 steps": Series(obs=[*obs[:26]], sim=[*sim[:26]]),
        "two steps": Series(obs=[1.0, 2.0], sim=[1.5, 2.5]),
        "one step": Series(obs=[1.0], sim=[1.5]),
        "constant observations": Series(obs=[2.5] * 200, sim=[*sim[:200]]),
        "constant simulation": Series(obs=[*obs], sim=[2.5] * 800),
        "never a flow": Series(obs=[0.0] * 200, sim=[*sim[:200]]),
        "constant low flows": Series(obs=[max(v, 4.0) for v in obs], sim=[*sim]),
        "no observation": Series(obs=[None] * 50, sim=[*sim[:50]]),
    }


def headrace_scores(series: Series) -> tuple[dict[str, float], set[str]]:
    """Return the scores of our own table for a series, NaN where undefined, and the notes."""
    obs, sim = (np.array(values, dtype=np.float64) for values in (series.obs, series.sim))
    tick = np.arange(len(obs))
    for first, steps in series.skipped:
        tick[first:] += steps
    metrics = StreamingMetrics(["a"], [["1"]], ["q"])
    where = np.zeros(len(obs), np.int64)
    # A step without prediction never reaches the metrics.
    seen = ~np.isnan(sim)
    metrics.update(where[seen], where[seen], obs[seen, None], sim[seen, None])
    whole = SeriesScores.undefined(1)
    whole.fill(0, obs, sim, StepAxis(tick=tick, window=search_window(STEP_SECONDS[series.resolution])))
    row = metrics.rows(whole)[0]
    names = ("nse", "rmse", "kge", "kge_r", "kge_alpha", "kge_beta", "bias", "fhv", "flv", "peak_timing")
    return {name: getattr(row, name) for name in names}, set(filter(None, row.note.split(";")))
