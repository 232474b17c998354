"""The common small unit, decoded at once: Blosc chunks of plain floats, with no step of Python between two of them."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from headrace.blosc_floats import decode_chunks, float_chunks
from headrace.decode import decode
from headrace.decode_floats import float_rule
from headrace.indexer.scan import is_small
from headrace.indexer.units import ScanUnit
from headrace.objects.fetch import Data, Fetch
from headrace.plain_chunks import absent_value
from headrace.schemas.variables import DecodeRule
from headrace.scratch import Lease
from headrace.store import StoredArray


def decoded_unit(
    stored: StoredArray,
    unit: ScanUnit,
    keys: Sequence[str],
    bounds: Sequence[tuple[int, int]],
    fetch: Fetch,
    lease: Lease | None,
) -> NDArray[np.float32] | None:
    """Return the canonical values of a unit, float32 [S, T], until memory is given back to ``lease``.

    None where that is not possible: the unit is large, its chunks are stored otherwise, or one of them cannot be read
    or decoded, which whoever reads them one by one will be told.

    Parameters
    ----------
    stored, unit
        What to decode.
    keys, bounds
        Of its stored objects, and their steps.
    fetch
        Where they are.
    lease
        Gives memory.
    """
    num_rows, num_steps = unit.rows[1] - unit.rows[0], bounds[-1][1] - bounds[0][0]
    chunks, rule = float_chunks(stored), float_rule(unit.rule, stored.dtype)
    if chunks is None or rule is None or not is_small(num_rows, num_steps):
        return None
    data: list[Data | None] = []
    with suppress(OSError):
        data += [fetch.data(key) for key in keys]
    if len(data) < len(keys):
        return None
    nbytes = chunks.nbytes + 4 * num_rows * num_steps
    memory = np.empty(nbytes, np.uint8) if lease is None else lease.take(nbytes)
    values = memory[chunks.nbytes :].view(np.float32).reshape(num_rows, num_steps)
    edges = np.array([start for start, _ in bounds] + [bounds[-1][1]], dtype=np.int64) - bounds[0][0]
    absent = _absent(stored, unit.rule) if None in data else np.float32(np.nan)
    whole = decode_chunks(chunks, rule, data, edges, values, absent=absent, memory=memory[: chunks.nbytes])
    return values if whole else None


def _absent(stored: StoredArray, rule: DecodeRule) -> np.float32:
    """Return what every value of an absent chunk is."""
    if rule.absent_is_missing:
        return np.float32(np.nan)
    fill = np.full((1, 1), absent_value(stored.array), dtype=stored.dtype)
    value: np.float32 = decode(fill, rule)[0, 0]
    return value
