"""Answer questions about neuralhydrology's metrics: a program for an environment that holds neuralhydrology and SciPy.

Each line of standard input is a question, a JSON object: `ask` names a function of this module, the rest are its
arguments. Each line of standard output is `{"answer": …}`, or `{"error": …}` where neuralhydrology refuses.

Its package of metrics imports all of its training code: only the folder is put in place, so that the one module is
imported and nothing else.
"""

import json
import math
import sys
import types
from collections.abc import Callable
from importlib import import_module, util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

Values = list[float | None]
_METRICS = ["NSE", "RMSE", "KGE", "Pearson-r", "Alpha-NSE", "Beta-KGE", "Beta-NSE", "FHV", "FLV", "Peak-Timing"]


def load_metrics() -> Any:
    """Import ``neuralhydrology.evaluation.metrics`` without the package around it."""
    spec = util.find_spec("neuralhydrology")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("neuralhydrology is not installed in this environment")
    package = types.ModuleType("neuralhydrology.evaluation")
    package.__path__ = [str(Path(spec.submodule_search_locations[0]) / "evaluation")]
    sys.modules[package.__name__] = package
    return import_module("neuralhydrology.evaluation.metrics")


def metrics(obs: Values, sim: Values, resolution: str, skipped: list[list[int]]) -> dict[str, float | None]:
    """Return its metrics of one series, null where it has NaN or infinity.

    ``skipped`` lists stretches ``[first, steps]``: before value ``first`` the axis leaves out so many steps.
    """
    tick = np.arange(len(obs))
    for first, steps in skipped:
        tick[first:] += steps
    date = pd.date_range("1990-01-01", periods=int(tick[-1]) + 1, freq=resolution)[tick]
    pair = [xr.DataArray(np.array(values, float), {"date": date}, ["date"]) for values in (obs, sim)]
    with np.errstate(all="ignore"):
        found = load_metrics().calculate_metrics(*pair, metrics=_METRICS, resolution=resolution)
    return {name: float(value) if math.isfinite(value) else None for name, value in found.items()}


def peaks(values: list[float], distance: int, prominence: float) -> list[int]:
    """Return what SciPy finds, as neuralhydrology calls it."""
    found, _ = load_metrics().signal.find_peaks(np.array(values), distance=distance, prominence=prominence)
    return [int(position) for position in found]


def main() -> None:
    """Answer question after question until the input ends."""
    load_metrics()
    refused = import_module("neuralhydrology.utils.errors").AllNaNError
    asked: dict[str, Callable[..., Any]] = {"metrics": metrics, "peaks": peaks}
    for line in sys.stdin:
        question = json.loads(line)
        reply: dict[str, Any]
        try:
            reply = {"answer": asked[question.pop("ask")](**question)}
        except refused as error:
            reply = {"error": str(error)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
