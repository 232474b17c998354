"""Rank and number of ranks: given, or taken from torch.distributed once it is initialised."""

import torch

from headrace.schemas.errors import ConfigError, describe


def resolve_world(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return (rank, world_size).

    Raises
    ------
    ConfigError
        Only one of the two is given, or the rank lies outside the world.
    """
    if (rank is None) != (world_size is None):
        raise ConfigError(
            describe(
                "rank and world_size belong together",
                where="WindowLoader",
                expected="both or neither",
                got=f"rank={rank}, world_size={world_size}",
                fix="give both",
            )
        )
    if rank is None or world_size is None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        return 0, 1
    if world_size < 1 or not 0 <= rank < world_size:
        raise ConfigError(
            describe(
                "rank is outside the world",
                where="WindowLoader",
                expected="0 <= rank < world_size",
                got=f"rank={rank}, world_size={world_size}",
                fix="correct the arguments",
            )
        )
    return rank, world_size
