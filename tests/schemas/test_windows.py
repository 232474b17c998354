"""The window rule against a slow oracle that tries every start of every basin, one by one."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headrace.schemas.intervals import Intervals
from headrace.schemas.windows import DROP_REASONS, TargetPolicy, TimeRange, WindowCount, WindowSpec, find_windows

Mask = NDArray[np.bool_]
POLICIES: tuple[TargetPolicy, ...] = ("keep", "drop_any_nan", "drop_all_nan")


def runs_of(mask: Mask) -> Intervals:
    """Return the maximal runs of true of a mask [basin, step]."""
    edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    row, start = np.nonzero(edges == 1)
    return Intervals(row=row, start=start, stop=np.nonzero(edges == -1)[1])


@dataclass(frozen=True, kw_only=True)
class Case:
    spec: WindowSpec
    period: TimeRange
    segments: list[TimeRange]
    basins: list[int]
    num_basins: int
    targets: list[Mask]
    inputs: list[Mask]
    policy: TargetPolicy

    def find(self) -> WindowCount:
        return find_windows(
            spec=self.spec,
            period=self.period,
            segments=self.segments,
            basins=np.array(self.basins, dtype=np.int32),
            num_basins=self.num_basins,
            targets=[runs_of(mask) for mask in self.targets],
            inputs=[runs_of(mask) for mask in self.inputs],
            target_policy=self.policy,
        )

    def universe(self) -> list[int]:
        """Every start whose target steps lie in the period and that is on the stride grid of its segment."""
        spec, period = self.spec, self.period
        starts = []
        for start in range(period.start - spec.length - 1, period.stop + 1):
            steps = range(start + spec.warmup_length, start + spec.length)
            home = next((s for s in self.segments if s.start <= start < s.stop), None)
            first = period.start - spec.warmup_length
            anchor = first if home is None else max(home.start, first)
            if all(period.start <= step < period.stop for step in steps) and (start - anchor) % spec.stride == 0:
                starts.append(start)
        return starts

    def reason(self, basin: int, start: int) -> str | None:
        """Return why a start is not served, or None where it is."""
        window = range(start, start + self.spec.length)
        steps = window[self.spec.warmup_length :]
        if start < 0 or window[-1] >= self.segments[-1].stop:
            return "record_too_short"
        if not any(s.start <= start and window[-1] < s.stop for s in self.segments):
            return "time_gap"
        observed = [bool(mask[basin, step]) for mask in self.targets for step in steps]
        if self.policy == "drop_any_nan" and not all(observed):
            return "target_missing"
        if self.policy == "drop_all_nan" and not any(observed):
            return "target_missing"
        if not all(mask[basin, step] for mask in self.inputs for step in window):
            return "input_missing"
        return None


def expand(count: WindowCount, stride: int) -> list[tuple[int, int, int]]:
    """Return (segment, basin, start) of every window, in the order of the table."""
    runs = count.runs
    rows = zip(runs.segment, runs.basin, runs.start, runs.stop, strict=True)
    return [(int(g), int(b), s) for g, b, start, stop in rows for s in range(start, stop, stride)]


def patchy(shape: tuple[int, int], missing: float, seed: int) -> Mask:
    """Return a mask whose values come in stretches of a few steps; a share of them is missing."""
    rng = np.random.default_rng(seed)
    rows = [
        np.repeat(rng.random(shape[1]) >= missing, rng.integers(1, 6, shape[1]))[: shape[1]] for _ in range(shape[0])
    ]
    return np.stack(rows)


@st.composite
def cases(draw: st.DrawFn, *, strides: int = 4, max_length: int = 9) -> Case:
    num_basins, steps = draw(st.integers(1, 3)), draw(st.integers(1, 30) | st.integers(15, 30))
    length = draw(st.integers(1, max_length))
    hindcast = draw(st.integers(0, length))
    cuts = sorted(draw(st.sets(st.integers(1, steps), max_size=3)) - {steps})
    start = draw(st.just(0) | st.integers(0, steps))
    masks = st.builds(patchy, st.just((num_basins, steps)), st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.integers(0, 999))
    return Case(
        spec=WindowSpec(
            hindcast_length=hindcast,
            forecast_length=length - hindcast,
            warmup_length=draw(st.integers(0, length - 1)),
            stride=draw(st.integers(1, strides)),
        ),
        period=TimeRange(start=start, stop=draw(st.just(steps) | st.integers(start, steps))),
        segments=[TimeRange(start=a, stop=b) for a, b in pairwise([0, *cuts, steps])],
        basins=sorted(draw(st.just(set(range(num_basins))) | st.sets(st.integers(0, num_basins - 1)))),
        num_basins=num_basins,
        targets=draw(st.lists(masks, min_size=1, max_size=3)),
        inputs=draw(st.lists(masks, max_size=3)),
        policy=draw(st.sampled_from(POLICIES)),
    )


@settings(max_examples=400)
@given(cases())
def test_served_windows_and_drop_reasons_equal_brute_force(case: Case) -> None:
    count = case.find()
    kept, dropped = [], {reason: np.zeros(case.num_basins, np.int64) for reason in DROP_REASONS}
    for basin in case.basins:
        for start in case.universe():
            reason = case.reason(basin, start)
            if reason is None:
                kept.append((basin, start))
            else:
                dropped[reason][basin] += 1
    assert [(basin, start) for _, basin, start in expand(count, case.spec.stride)] == kept
    for reason in DROP_REASONS:
        assert count.dropped[reason].tolist() == dropped[reason].tolist(), reason
    total = sum(int(numbers.sum()) for numbers in count.dropped.values())
    assert count.runs.num_windows.sum() + total == len(case.universe()) * len(case.basins)


@given(cases())
def test_window_runs_are_sorted_tight_and_name_their_segment(case: Case) -> None:
    count, stride = case.find(), case.spec.stride
    runs = count.runs
    assert [runs.segment.dtype, runs.basin.dtype, runs.start.dtype, runs.stop.dtype] == [np.dtype(np.int32)] * 4
    assert runs.num_windows.dtype == np.int64
    np.testing.assert_array_equal(runs.num_windows, -(-(runs.stop - runs.start) // stride))
    assert (runs.num_windows > 0).all()
    keys = list(zip(runs.basin.tolist(), runs.start.tolist(), strict=True))
    assert keys == sorted(set(keys))
    for segment, _, start in expand(count, stride):
        home = case.segments[segment]
        assert home.start <= start <= home.stop - case.spec.length
        assert (start - max(home.start, case.period.start - case.spec.warmup_length)) % stride == 0


def serves(observed: Mask, policy: TargetPolicy) -> bool:
    if policy == "keep":
        return True
    return bool(observed.all() if policy == "drop_any_nan" else observed.any())


@given(cases(strides=1))
def test_unit_stride_without_gaps_equals_torchhydros_statement(case: Case) -> None:
    """drop_any_nan: all target steps of all targets observed; drop_all_nan: at least one value observed."""
    steps, spec = case.segments[-1].stop, case.spec
    whole = Case(**{**vars(case), "segments": [TimeRange(start=0, stop=steps)], "inputs": []})
    stacked = np.stack(case.targets, axis=-1)
    expected = [
        (0, basin, start)
        for basin in case.basins
        for start in range(max(case.period.start - spec.warmup_length, 0), case.period.stop - spec.length + 1)
        if serves(stacked[basin, start + spec.warmup_length : start + spec.length], case.policy)
    ]
    assert expand(whole.find(), 1) == expected


def golden(**changes: object) -> WindowCount:
    steps = int(changes.pop("steps", 10))  # type: ignore[call-overload]
    full = np.ones((1, steps), dtype=bool)
    settings_: dict[str, object] = {
        "spec": WindowSpec(hindcast_length=3, forecast_length=1, warmup_length=3),
        "period": TimeRange(start=0, stop=steps),
        "segments": [TimeRange(start=0, stop=steps)],
        "basins": [0],
        "num_basins": 1,
        "targets": [full],
        "inputs": [full],
        "policy": "drop_any_nan",
    }
    return Case(**{**settings_, **changes}).find()  # type: ignore[arg-type]


def reasons(count: WindowCount) -> dict[str, int]:
    return {reason: int(number.sum()) for reason, number in count.dropped.items() if number.any()}


def test_record_of_10_with_window_4_serves_7_and_counts_the_3_that_reach_before_it() -> None:
    count = golden()
    assert expand(count, 1) == [(0, 0, start) for start in range(7)]
    assert reasons(count) == {"record_too_short": 3}


def test_one_missing_target_drops_only_the_windows_that_end_on_it() -> None:
    target = np.ones((1, 10), dtype=bool)
    target[0, 5] = False
    assert expand(golden(targets=[target]), 1) == [(0, 0, s) for s in (0, 1, 3, 4, 5, 6)]
    assert reasons(golden(targets=[target])) == {"record_too_short": 3, "target_missing": 1}
    assert reasons(golden(targets=[target], policy="keep")) == {"record_too_short": 3}


def test_one_missing_input_drops_every_window_that_sees_it() -> None:
    """I7: under the policy drop, and with a count."""
    given_ = np.ones((1, 10), dtype=bool)
    given_[0, 5] = False
    count = golden(inputs=[given_])
    assert expand(count, 1) == [(0, 0, s) for s in (0, 1, 6)]
    assert reasons(count) == {"record_too_short": 3, "input_missing": 4}


def test_window_longer_than_the_record_serves_nothing_and_says_so() -> None:
    long = WindowSpec(hindcast_length=9, forecast_length=1, warmup_length=9)
    count = golden(steps=5, spec=long)
    assert count.runs.start.size == 0
    assert reasons(count) == {"record_too_short": 5}
    no_warmup = WindowSpec(hindcast_length=9, forecast_length=1, warmup_length=0)
    assert reasons(golden(steps=5, spec=no_warmup)) == {}, "its targets do not fit into the period: no universe"


def test_one_step_record_serves_one_window_of_one_step() -> None:
    count = golden(steps=1, spec=WindowSpec(hindcast_length=0, forecast_length=1, warmup_length=0))
    assert expand(count, 1) == [(0, 0, 0)]
    assert reasons(count) == {}


def test_inputs_reach_back_before_the_period_but_targets_do_not() -> None:
    count = golden(period=TimeRange(start=6, stop=8))
    assert expand(count, 1) == [(0, 0, 3), (0, 0, 4)]
    assert reasons(count) == {}


def test_gap_drops_the_windows_that_would_cross_it() -> None:
    count = golden(segments=[TimeRange(start=0, stop=5), TimeRange(start=5, stop=10)])
    assert expand(count, 1) == [(0, 0, 0), (0, 0, 1), (1, 0, 5), (1, 0, 6)]
    assert reasons(count) == {"record_too_short": 3, "time_gap": 3}


def test_stride_grid_starts_anew_in_every_segment() -> None:
    spec = WindowSpec(hindcast_length=1, forecast_length=1, warmup_length=0, stride=3)
    count = golden(spec=spec, segments=[TimeRange(start=0, stop=5), TimeRange(start=5, stop=10)])
    assert expand(count, 3) == [(0, 0, 0), (0, 0, 3), (1, 0, 5), (1, 0, 8)]


@pytest.mark.parametrize("policy", POLICIES)
def test_absent_targets_drop_nothing(policy: TargetPolicy) -> None:
    assert reasons(golden(targets=[], inputs=[], policy=policy)) == {"record_too_short": 3}


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"hindcast_length": 0, "forecast_length": 0, "warmup_length": 0}, "at least 1, got 0"),
        ({"hindcast_length": -1, "forecast_length": 3, "warmup_length": 0}, "got -1"),
        ({"hindcast_length": 3, "forecast_length": 1, "warmup_length": 4}, "so that a target step remains, got 4"),
        ({"hindcast_length": 3, "forecast_length": 1, "warmup_length": -1}, "got -1"),
        ({"hindcast_length": 3, "forecast_length": 1, "warmup_length": 0, "stride": 0}, "stride must be at least 1"),
    ],
)
def test_impossible_window_shapes_are_refused(shape: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WindowSpec(**shape)


def test_lengths_follow_from_the_spec() -> None:
    spec = WindowSpec(hindcast_length=10, forecast_length=4, warmup_length=9)
    assert (spec.length, spec.target_length) == (14, 5)
