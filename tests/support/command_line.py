"""The command line as a user meets it: arguments in; exit code, standard output and standard error out."""

import contextlib
import io
import logging
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from headrace.cli import main
from synthetic import write_attributes, write_store

CONFIG = """\
datasets:
  one:
    timeseries: one_timeseries.zarr
    attributes: one_attributes.zarr
    t_range_train: ["2000-01-01", "2000-03-20"]
    t_range_valid: ["2000-03-21", "2000-04-09"]
    t_range_test: ["2000-04-10", "2000-04-29"]
    variables:
      relevant: {precipitation: rain, temperature: temp}
      target: {streamflow: {physical: flow, unit: mm/day}}
      constant: {area: area_km2}
  two:
    timeseries: two_timeseries.zarr
    attributes: two_attributes.zarr
    t_range_train: ["2001-01-01", "2001-02-19"]
    t_range_test: ["2001-02-20", "2001-03-01"]
    variables:
      relevant: {precipitation: P, temperature: T}
      target: {streamflow: {physical: Q, unit: mm/day}}
      constant: {area: area_km2}
window: {hindcast_length: 5, forecast_length: 1, warmup_length: 5}
loader: {batch_size: 32, num_workers: 1}
train: {hidden_size: 4, train_epochs: 2, dropout: 0.1, device: cpu}
"""


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def run_headrace(*arguments: str | Path) -> Outcome:
    """Run ``headrace`` with arguments in this process, and leave its logger and its answer to Ctrl-C as they were."""
    ctrl_c = signal.getsignal(signal.SIGINT)
    logger = logging.getLogger("headrace")
    kept = logger.handlers, logger.propagate, logger.level
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    try:
        with (
            mock.patch.object(sys, "argv", ["headrace", *map(str, arguments)]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main()
    except SystemExit as exit_:
        code = exit_.code
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, ctrl_c)
        logger.handlers, logger.propagate, logger.level = kept
    assert isinstance(code, int)
    return Outcome(code, out.getvalue(), err.getvalue())


def write_project(folder: Path, *, number_of_two: int = 1) -> Path:
    """Write two small data sets and a configuration of both; return the configuration file.

    ``one`` has 3 basins and 120 days, ``two`` 2 basins and 60. In ``one`` a basin lacks rain on days 20 and 21, and
    another streamflow on days 40 to 44. `number_of_two` goes into every value of ``two``.
    """
    dry = np.zeros((3, 120), dtype=bool)
    dry[1, 20:22] = True
    lost = np.zeros((3, 120), dtype=bool)
    lost[2, 40:45] = True
    one = write_store(
        folder / "one_timeseries.zarr",
        basins=3,
        steps=120,
        variables=("rain", "temp", "flow"),
        chunks=(2, 50),
        missing={"rain": dry, "flow": lost},
    )
    two = write_store(
        folder / "two_timeseries.zarr",
        basins=["21", "22"],
        steps=60,
        variables=("P", "T", "Q"),
        zarr_format=3,
        dims=("time", "basin"),
        time_start="2001-01-01",
        dataset=number_of_two,
    )
    for name, store in (("one", one), ("two", two)):
        area = np.linspace(10.0, 40.0, len(store.basin_ids))
        write_attributes(folder / f"{name}_attributes.zarr", store.basin_ids, {"area_km2": area})
    config = folder / "project.yml"
    config.write_text(CONFIG, encoding="utf-8")
    return config
