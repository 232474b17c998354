"""The window rule: which starts give a window that may be served, and why the others do not.

Both phases call this one module. Runs go in, starts come out, for all basins of a data set at once. The rule, for a
period [p, q), a segment [u, v), L input steps, W warm-up steps (DESIGN "Windows"):

    B = [max(u, p - W), min(q, v) - L + 1)
    target  drop_any_nan: union of [c - W, d - L + 1) over runs [c, d) of the intersection of the targets
            drop_all_nan: union of [c - L + 1, d - W) over runs [c, d) of their union
    input   drop: union of [a, b - L + 1) over runs [a, b) of the intersection of the inputs
    starts = B and target and input, on the stride grid anchored at max(u, p - W)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headrace.schemas.intervals import Intervals

TargetPolicy = Literal["keep", "drop_any_nan", "drop_all_nan"]

DROP_REASONS = ("record_too_short", "time_gap", "target_missing", "input_missing")
"""Why a start of the universe is not served; the first reason that holds wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSpec:
    """Shape of a window, in steps.

    Parameters
    ----------
    hindcast_length, forecast_length
        Input steps before and from the forecast on; L is their sum.
    warmup_length
        W: leading steps that carry no target; the target covers the last P = L - W steps.
    stride
        Distance between consecutive starts.
    """

    hindcast_length: int = 364
    forecast_length: int = 1
    warmup_length: int = 364
    stride: int = 1

    def __post_init__(self) -> None:
        """Refuse shapes with no input, no target or no progress."""
        if self.hindcast_length < 0 or self.forecast_length < 0 or self.length < 1:
            got = f"{self.hindcast_length} + {self.forecast_length}"
            msg = f"hindcast_length + forecast_length must be at least 1, got {got}"
            raise ValueError(msg)
        if not 0 <= self.warmup_length < self.length:
            msg = (
                f"warmup_length must lie in [0, {self.length}) so that a target step remains, got {self.warmup_length}"
            )
            raise ValueError(msg)
        if self.stride < 1:
            msg = f"stride must be at least 1, got {self.stride}"
            raise ValueError(msg)

    @property
    def length(self) -> int:
        """L, the number of input steps."""
        return self.hindcast_length + self.forecast_length

    @property
    def target_length(self) -> int:
        """P, the number of target steps."""
        return self.length - self.warmup_length


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """A half-open range of steps ``[start, stop)``."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRuns:
    """Maximal runs of starts, struct of arrays, sorted by (basin, start).

    Parameters
    ----------
    segment, basin, start, stop
        int32 [R]; ``start`` lies on the stride grid, ``stop`` is exclusive.
    num_windows
        int64 [R], windows in the run: ceil((stop - start) / stride).
    """

    segment: NDArray[np.int32]
    basin: NDArray[np.int32]
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    num_windows: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCount:
    """Windows of one data set and period, and what was dropped.

    Parameters
    ----------
    runs
        The starts that may be served.
    dropped
        Reason to int64 [num_basins]; kept + dropped is the universe of starts whose targets lie in the period.
    """

    runs: WindowRuns
    dropped: dict[str, NDArray[np.int64]]


def _on_grid(start: NDArray[np.int64], stop: NDArray[np.int64], anchor: int, stride: int) -> NDArray[np.int64]:
    """Count the grid points anchor + k·stride inside each [start, stop); all starts are at or after the anchor."""
    first = -(-(start - anchor) // stride)
    last = -(-(stop - anchor) // stride)
    count: NDArray[np.int64] = np.maximum(last - first, 0)
    return count


def allowed_by_target(targets: Sequence[Intervals], spec: WindowSpec, policy: TargetPolicy) -> Intervals | None:
    """Return the starts that the target policy allows in any period, or None where it allows all."""
    if policy == "keep" or not targets:
        return None
    if policy == "drop_any_nan":
        observed = Intervals.overlay(targets, at_least=len(targets))
        return observed.shifted(-spec.warmup_length, 1 - spec.length)
    observed = Intervals.overlay(targets, at_least=1)
    return observed.shifted(1 - spec.length, -spec.warmup_length)


def allowed_by_input(inputs: Sequence[Intervals], spec: WindowSpec) -> Intervals | None:
    """Return the starts at which every given input is observed throughout, or None where none is given."""
    if not inputs:
        return None
    return Intervals.overlay(inputs, at_least=len(inputs)).shifted(0, 1 - spec.length)


def find_windows(
    *,
    spec: WindowSpec,
    period: TimeRange,
    segments: Sequence[TimeRange],
    basins: NDArray[np.int32],
    num_basins: int,
    targets: Sequence[Intervals],
    inputs: Sequence[Intervals],
    target_policy: TargetPolicy,
) -> WindowCount:
    """Apply the window rule to all basins of a data set for one period.

    Parameters
    ----------
    spec
        Window shape.
    period
        Steps [p, q), already clipped to the record.
    segments
        Stretches of regular time axis, in order; together they cover the record.
    basins
        int32 [S]: the basins that belong to the period's split, ascending.
    num_basins
        Basins of the data set; length of the counts.
    targets
        Observed runs of each target the data set has, rows are basins.
    inputs
        Observed runs of each input whose missing policy is ``drop``.
    target_policy
        What a missing target does; ``keep`` for validation and test.

    Returns
    -------
    WindowCount
        Runs of starts and the dropped counts.
    """
    target = allowed_by_target(targets, spec, target_policy)
    given = allowed_by_input(inputs, spec)
    dropped = {reason: np.zeros(num_basins, dtype=np.int64) for reason in DROP_REASONS}
    first, last = period.start - spec.warmup_length, period.stop - spec.length + 1
    record_start = segments[0].start if segments else 0
    early = np.array([first]), np.array([min(record_start, last)])
    dropped["record_too_short"][basins] = _on_grid(*early, first, spec.stride)[0]
    found: list[WindowRuns] = []
    for number, segment in enumerate(segments):
        anchor = max(segment.start, first)
        end = min(segment.stop, last)
        if end <= anchor:
            continue
        base_stop = max(anchor, min(period.stop, segment.stop) - spec.length + 1)
        tail = np.array([base_stop]), np.array([end])
        dropped["time_gap"][basins] += _on_grid(*tail, anchor, spec.stride)[0]
        starts = Intervals.same_for(basins, anchor, base_stop)
        kept = [starts]
        for allowed in (target, given):
            kept.append(kept[-1] if allowed is None else Intervals.overlay([kept[-1], allowed], at_least=2))
        counts = [
            np.bincount(k.row, weights=_on_grid(k.start, k.stop, anchor, spec.stride), minlength=num_basins)
            for k in kept
        ]
        dropped["target_missing"] += (counts[0] - counts[1]).astype(np.int64)
        dropped["input_missing"] += (counts[1] - counts[2]).astype(np.int64)
        found.append(_aligned(kept[2], number, anchor, spec.stride))
    return WindowCount(runs=_concatenate(found), dropped=dropped)


def _aligned(starts: Intervals, segment: int, anchor: int, stride: int) -> WindowRuns:
    """Move each start up to the stride grid and drop intervals without a grid point."""
    num_windows = _on_grid(starts.start, starts.stop, anchor, stride)
    keep = num_windows > 0
    start = anchor + -(-(starts.start[keep] - anchor) // stride) * stride
    return WindowRuns(
        segment=np.full(start.shape, segment, dtype=np.int32),
        basin=starts.row[keep].astype(np.int32),
        start=start.astype(np.int32),
        stop=starts.stop[keep].astype(np.int32),
        num_windows=num_windows[keep],
    )


def _concatenate(parts: Sequence[WindowRuns]) -> WindowRuns:
    columns = {}
    for name, dtype in (("segment", np.int32), ("basin", np.int32), ("start", np.int32), ("stop", np.int32)):
        columns[name] = np.concatenate([getattr(p, name) for p in parts] or [np.zeros(0, dtype)]).astype(dtype)
    num_windows = np.concatenate([p.num_windows for p in parts] or [np.zeros(0, np.int64)])
    order = np.lexsort((columns["start"], columns["basin"]))
    return WindowRuns(num_windows=num_windows[order], **{k: v[order] for k, v in columns.items()})
