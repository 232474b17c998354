"""How many rows a round holds: the least that works, what a budget can hold, and the tiles of it."""

from headrace.loader.budget import human_nbytes
from headrace.loader.layout import Layout
from headrace.loader.tiles import Tiles, cut_tiles, tile_starts
from headrace.loader.windows import Windows
from headrace.schemas.errors import ConfigError, describe


def tiles_of_rounds(windows: Windows, layout: Layout, length: int, round_steps: int) -> Tiles:
    """Cut tiles for rounds of a number of rows.

    Raises
    ------
    ConfigError
        A round cannot hold a single window.
    """
    tiles = cut_tiles(windows, layout, length, tile_starts(layout, length, round_steps))
    needed = int(tiles.num_rows.max())
    if needed > round_steps:
        raise ConfigError(
            describe(
                "rounds are too small",
                where="WindowLoader",
                expected=f"at least {needed} rows",
                got=str(round_steps),
                fix="use the state of a loader of the same windows",
            )
        )
    return tiles


def check_least(layout: Layout, length: int, row_nbytes: int, budget_nbytes: int, num_pools: int) -> None:
    """Refuse a budget below the least: pools of one window each, or the whole split where that is less."""
    needed = min(num_pools * length, layout.num_rows) * row_nbytes
    if needed > budget_nbytes:
        raise ConfigError(
            describe(
                "memory_budget is too small",
                where="WindowLoader",
                expected=f"at least {needed} bytes: {num_pools} pools of one window each",
                got=f"{budget_nbytes} bytes",
                fix="raise memory_budget",
            )
        )


def check_held(round_steps: int, num_rows: int, row_nbytes: int, budget_nbytes: int, num_pools: int) -> None:
    """Refuse rounds, decided by another process, that the own budget cannot hold."""
    needed = min(num_pools * round_steps, num_rows) * row_nbytes  # a split that fits as a whole needs one pool
    if needed > budget_nbytes:
        raise ConfigError(
            describe(
                "memory_budget is too small for the rounds that others use",
                where="WindowLoader",
                expected=f"at least {human_nbytes(needed)}: rounds of {round_steps} rows",
                got=human_nbytes(budget_nbytes),
                fix="raise memory_budget, or give every rank and run the same",
            )
        )
