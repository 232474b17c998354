"""Rank and number of ranks: given, or taken from torch.distributed once it is initialised."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from headrace.loader.arguments import whole_number
from headrace.loader.joint import Joint
from headrace.schemas.errors import ConfigError, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One process among those that share an epoch.

    Parameters
    ----------
    rank, size
        Place and number of processes.
    connected
        Whether they can talk: rank and size come from torch.distributed. Making a loader is then a collective call.
    """

    rank: int
    size: int
    connected: bool = False

    def check_budget(self, budget: str | float, *, resident: bool) -> None:
        """Refuse ranks that cut rounds by what memory is free and cannot agree on it."""
        if budget == "auto" and not resident and self.size > 1 and not self.connected:
            raise ConfigError(
                describe(
                    "memory_budget: auto differs from process to process",
                    where="WindowLoader(rank=…, world_size=…)",
                    expected="one size for all ranks, since it decides the order of windows",
                    got="auto, and ranks that cannot talk to each other",
                    fix="give a size such as 2GiB, or initialise torch.distributed and leave rank and world_size out",
                )
            )

    def check_windows(self, num_windows: int, *, drop_last: bool) -> None:
        """Refuse an epoch that cannot give every rank a window."""
        if num_windows < self.size and not drop_last:
            raise ConfigError(
                describe(
                    "fewer windows than ranks",
                    where="WindowLoader",
                    expected=f"at least {self.size} windows",
                    got=f"{num_windows}",
                    fix="use fewer ranks, or drop_last=True",
                )
            )


def check_same(joint: Joint, facts: Mapping[str, object]) -> None:
    """Compare what decides the order of windows with the other ranks.

    Raises
    ------
    ConfigError
        Ranks differ: some windows would be served twice and others never.
    """
    every = joint.exchange(dict(facts))
    differing = [name for name in facts if any(other.get(name) != every[0].get(name) for other in every)]
    if differing:
        joint.everyone_knows()
        got = "; ".join(
            f"rank {rank}: " + ", ".join(f"{n}={other.get(n)}" for n in differing) for rank, other in enumerate(every)
        )
        raise ConfigError(
            describe(
                "ranks would serve different epochs",
                where="WindowLoader",
                expected=f"the same {', '.join(differing)} on every rank",
                got=got,
                fix="give every rank the same index and arguments",
            )
        )


def resolve_world(rank: int | None, world_size: int | None) -> World:
    """Return this process's place.

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
            size = torch.distributed.get_world_size()
            return World(rank=torch.distributed.get_rank(), size=size, connected=size > 1)
        return World(rank=0, size=1)
    size, place = whole_number("world_size", world_size), whole_number("rank", rank, least=0)
    if place >= size:
        raise ConfigError(
            describe(
                "rank is outside the world",
                where="WindowLoader",
                expected="0 <= rank < world_size",
                got=f"rank={rank}, world_size={world_size}",
                fix="correct the arguments",
            )
        )
    return World(rank=place, size=size)
