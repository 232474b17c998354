"""Raw values → canonical and normalised values of one variable. Legend: S basins, T steps."""

import numpy as np
from numpy.typing import NDArray

from headrace.decode import decode
from headrace.decode_floats import FloatRule, float_rule
from headrace.loader.normalize import Scaling
from headrace.loader.read_plan import OpenDataset


def plain_rule(opened: OpenDataset, v: int, raw: NDArray[np.generic], lost: list[slice]) -> FloatRule | None:
    """Return the rule of raw values that compiled code can take as they are; None for others. Arguments as below."""
    rule = opened.variables[v].rule
    assert rule is not None
    return float_rule(rule, raw.dtype) if not lost and raw.strides[-1] == raw.itemsize else None


def canonical(
    opened: OpenDataset, v: int, raw: NDArray[np.generic], lost: list[slice], basins: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Decode raw values; NaN is missing.

    Parameters
    ----------
    opened, v
        Data set, and position among its variables; one that the store holds.
    raw
        [S, T], stored values.
    lost
        Step ranges that hold nothing but missing values.
    basins
        int32 [S], basin numbers.

    Returns
    -------
    NDArray[np.float32]
        [S, T], a new array, each row contiguous; steps as they are stored.
    """
    rule, source = opened.variables[v].rule, opened.source
    assert rule is not None
    area = None if rule.area_array is None else source.areas[rule.area_array][basins]
    block = decode(raw, rule, area=area, out=np.empty(raw.shape, np.float32))
    for steps in lost:
        block[:, steps] = np.nan
    return block


def normalised(
    opened: OpenDataset,
    v: int,
    raw: NDArray[np.generic],
    lost: list[slice],
    basins: NDArray[np.int32],
    scaling: Scaling,
) -> NDArray[np.float32]:
    """Return what :func:`canonical` does, scaled as the data set's inputs or targets are."""
    block = canonical(opened, v, raw, lost, basins)
    mean, std = scaling.of(basins, opened.columns[v])
    block -= mean[:, None]
    block /= std[:, None]
    return block
