"""Raw stored values → canonical float32 with NaN where missing: the one place that says what a value means.

The scan, the loader and the statics all call :func:`decode`, so that a statistic and the batch it normalises agree bit
for bit. Legend: S basins, T steps.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.schemas.variables import DecodeRule


def decode(
    raw: NDArray[np.generic],
    rule: DecodeRule,
    *,
    area: NDArray[np.float64] | None = None,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Decode one block of one array.

    Parameters
    ----------
    raw
        Stored values [S, T], integer or floating.
    rule
        What the values mean.
    area
        float64 [S], area of each basin in the area array's unit; needed when the rule has an ``area_factor``.
    out
        float32 [S, T], where to put the result; a new array if None.

    Returns
    -------
    NDArray[np.float32]
        Canonical values [S, T], never a view of ``raw``; NaN is missing. Infinite values, stored or reached by scaling
        or by the cast to float32, are missing.
    """
    missing = _flagged(raw, rule.missing_values)
    value: NDArray[Any] = raw
    if scales(rule):
        wide = raw.astype(np.float64)
        for scale, offset in ((rule.cf_scale, rule.cf_offset), (rule.scale, rule.offset)):
            with np.errstate(over="ignore", invalid="ignore"):
                if scale != 1.0:
                    wide *= scale
                if offset != 0.0:
                    wide += offset
        if rule.area_factor is not None:
            if area is None:
                msg = "this rule needs the basin areas"
                raise ValueError(msg)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                wide *= (rule.area_factor / area)[:, None]
        value = wide
    with np.errstate(over="ignore", invalid="ignore"):
        # Bounds meet float32 values as float32: a stored 0.1 lies within a bound of 0.1.
        if rule.valid_min is not None:
            missing = _either(missing, value < rule.valid_min)
        if rule.valid_max is not None:
            missing = _either(missing, value > rule.valid_max)
        if out is None:
            out = value.astype(np.float32)
        else:
            np.copyto(out, value, casting="unsafe")
    if raw.dtype.kind == "f" or scales(rule):
        finite = np.isfinite(out)
        if not finite.all():  # most blocks have no hole: two passes saved
            missing = _either(missing, ~finite)
    if missing is not None:
        np.copyto(out, np.float32(np.nan), where=missing)
    return out


def scales(rule: DecodeRule) -> bool:
    """Return whether a rule computes with values, or only tells which are missing."""
    pairs = (rule.cf_scale, rule.cf_offset, rule.scale, rule.offset)
    return pairs != (1.0, 0.0, 1.0, 0.0) or rule.area_factor is not None


def _either(first: NDArray[np.bool_] | None, second: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return second if first is None else np.logical_or(first, second, out=second)


def _flagged(raw: NDArray[np.generic], flags: tuple[float, ...]) -> NDArray[np.bool_] | None:
    """Return where the raw value is one of the flags, compared in the raw type."""
    missing: NDArray[np.bool_] | None = None
    for flag in flags:
        if np.isnan(flag):
            continue  # NaN in floating data is missing anyway, and integers hold none
        if raw.dtype.kind == "f":
            with np.errstate(over="ignore"):
                same = raw == raw.dtype.type(flag)
        elif float(flag).is_integer():
            same = raw == int(flag)
        else:
            continue
        missing = _either(missing, np.asarray(same))
    return missing
