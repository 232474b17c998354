"""Whether some target of a split is observed is what looking at every step of every window says."""

import numpy as np
import pyarrow as pa

from headrace.loader.observed_targets import any_target_observed
from headrace.loader.windows import Windows
from headrace.schemas.windows import WindowSpec


class RunsAlone:
    """An index of which only the table of runs is asked for."""

    def __init__(self, observed: np.ndarray) -> None:
        change = np.diff(observed.astype(np.int8), axis=1, prepend=0, append=0)
        (basin, start), (_, stop) = np.nonzero(change == 1), np.nonzero(change == -1)
        self._runs = pa.table({"basin": basin, "start": start, "stop": stop})

    def fetch(self, name: str, *, dataset_id: str, variable: str) -> pa.Table:
        assert (name, dataset_id) == ("runs", "a")
        return self._runs if variable == "flow" else self._runs.slice(0, 0)


def test_it_is_what_every_step_of_every_window_says():
    random, said = np.random.default_rng(5), []
    for _ in range(300):
        stride, length, warmup = int(random.integers(1, 5)), int(random.integers(1, 6)), 0
        warmup = int(random.integers(0, length))
        observed = random.random((3, 24)) < 0.04
        first = np.sort(random.choice(18, size=2, replace=False))
        start = np.concatenate([first, first])
        stop = np.minimum(start + np.array([1, 3, 1, 3]), [first[1], 19, first[1], 19])
        basin = np.array([0, 0, 2, 2])
        windows = Windows(
            dataset=np.zeros(4, np.int16), basin=basin.astype(np.int32), start=start.astype(np.int32),
            stop=stop.astype(np.int32), num_windows=-(-(stop - start) // stride), stride=stride,
        )  # fmt: skip
        expected = any(
            observed[b, s + warmup : s + length].any()
            for b, low, high in zip(basin, start, stop, strict=True)
            for s in range(low, high, stride)
        )
        shape = WindowSpec(hindcast_length=length, forecast_length=0, warmup_length=warmup, stride=stride)
        got = any_target_observed(RunsAlone(observed), ["a"], ["level", "flow"], windows, shape)
        said.append(got)
        assert got == expected
    assert 50 < sum(said) < 250
