"""Numbers that carry their own coordinates.

A value in a synthetic store says which data set, variable, basin and step it belongs to, so a
misplaced value names the place it came from. No encoded value is 0: a 0 found in a result comes
from a fill value or a mask, never from the store's data.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

STEP_BITS = 12
BASIN_BITS = 6
VARIABLE_BITS = 3
DATASET_BITS = 3

MAX_STEPS = 1 << STEP_BITS
MAX_BASINS = 1 << BASIN_BITS
MAX_VARIABLES = 1 << VARIABLE_BITS
MAX_DATASETS = 1 << DATASET_BITS


class Place(NamedTuple):
    """Where an encoded value belongs; every field is an int or an int64 array of one shape."""

    dataset: NDArray[np.int64] | int
    variable: NDArray[np.int64] | int
    basin: NDArray[np.int64] | int
    step: NDArray[np.int64] | int


def encode(basin: ArrayLike, step: ArrayLike, variable: ArrayLike, dataset: ArrayLike = 0) -> NDArray[np.float32]:
    """Return the value of a place, exact in float32 and larger than 0.

    The value is ``1 + step + 2**12 basin + 2**18 variable + 2**21 dataset``: at most ``2**24``,
    the largest power of two up to which float32 counts without a hole. Arguments broadcast.

    Limits: step < 4096, basin < 64, variable < 8, dataset < 8; anything else raises ValueError.
    """
    fields = (
        ("step", step, MAX_STEPS),
        ("basin", basin, MAX_BASINS),
        ("variable", variable, MAX_VARIABLES),
        ("dataset", dataset, MAX_DATASETS),
    )
    value: NDArray[np.int64] = np.ones((), dtype=np.int64)
    factor = 1
    for name, number, limit in fields:
        digits = np.asarray(number, dtype=np.int64)
        if digits.size and (digits.min() < 0 or digits.max() >= limit):
            raise ValueError(f"{name} must lie in [0, {limit}), got {digits.min()} … {digits.max()}")
        value = value + digits * factor
        factor *= limit
    return value.astype(np.float32)


def decode_value(value: ArrayLike) -> Place:
    """Return the place that `encode` gave `value`; scalars in, ints out.

    Raises ValueError for NaN, 0 and every other number that `encode` cannot have made.
    """
    exact = np.asarray(value, dtype=np.float64)
    if not np.all((exact >= 1) & (exact <= 1 << 24) & (exact == np.floor(exact))):
        raise ValueError(f"not an encoded value: {value!r}")
    rest = exact.astype(np.int64) - 1
    digits = []
    for limit in (MAX_STEPS, MAX_BASINS, MAX_VARIABLES, MAX_DATASETS):
        rest, digit = np.divmod(rest, limit)
        digits.append(int(digit) if digit.ndim == 0 else digit)
    step, basin, variable, dataset = digits
    return Place(dataset=dataset, variable=variable, basin=basin, step=step)
