"""A budget too small to mix: said once, with the budget that would do.

Rounds of few tiles make batches of few basins.
"""

import numpy as np

from headrace.loader.assemble import Serving
from headrace.loader.budget import human_nbytes
from headrace.loader.schedule import EpochPlan

GOOD_SHARE = 0.9
"""Basins of a batch, of those that a perfect shuffle would mix, from which on nothing is said."""


def expected_basins(basins: float, batch_size: int) -> float:
    """Return how many basins a batch has on average, drawn from so many records of one length."""
    return float(basins * -np.expm1(batch_size * np.log1p(-1.0 / basins))) if basins > 1.0 else 1.0


def thin_rounds(plan: EpochPlan, num_basins: int, batch_size: int) -> tuple[float, float] | None:
    """Judge the rounds of an epoch by their tiles.

    Parameters
    ----------
    plan
        Of a split that does not stay in memory.
    num_basins
        Basins of the split.
    batch_size
        Windows of a batch.

    Returns
    -------
    tuple of float, or None
        Basins of a batch as a share of those of a perfect shuffle, and how many times the rows of a round would mix
        well. None where they do, or nothing is shuffled.

    Notes
    -----
    An estimate: basins are taken for equally long, the tiles of a round for those of different basins, and larger
    rounds to hold more tiles of one length, as :func:`headrace.loader.tiles.tile_starts` cuts them where there are few.
    """
    tiles = max(plan.tile_order.size / max(plan.num_rounds, 1), 1.0)
    perfect = expected_basins(num_basins, batch_size)
    share = expected_basins(tiles, batch_size) / perfect
    if not plan.shuffle or share >= GOOD_SHARE:
        return None
    low, high = tiles, float(num_basins)
    while high - low > 0.5:
        middle = (low + high) / 2.0
        if expected_basins(middle, batch_size) < GOOD_SHARE * perfect:
            low = middle
        else:
            high = middle
    return share, high / tiles


def say_thin(serving: Serving, plan: EpochPlan, batch_size: int) -> str | None:
    """Return what to say about rounds of too few tiles; None where they mix well."""
    num_basins, num_rows = serving.shape.layout.num_slots, serving.shape.layout.num_rows
    found = None if serving.resident else thin_rounds(plan, num_basins, batch_size)
    if found is None:
        return None
    share, times = found
    enough = min(serving.round_steps * times * serving.num_pools, num_rows) * serving.row_nbytes
    return (
        f"memory_budget is small for shuffling {num_basins} basins: a batch mixes about {share:.2f} of the basins that "
        "a perfect shuffle would, and models may learn less from such batches; about "
        f"{human_nbytes(enough)} would do"
    )
