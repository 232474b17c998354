"""Several ranks that cannot talk to each other: equal counts, nothing twice, nothing lost (H1)."""

from typing import Any

import pytest

import headrace
from headrace.schemas.errors import ConfigError
from oracle_loader import windows_of


@pytest.mark.parametrize("budget", ["1GiB", 2400])
@pytest.mark.parametrize(("world", "batch_size"), [(2, 5), (3, 64), (4, 1000)])
def test_ranks_share_the_global_batches_of_one_process(index, budget, world, batch_size):
    settings: dict[str, Any] = {"seed": 2, "memory_budget": budget, "num_workers": 1}
    with headrace.WindowLoader(index, "train", batch_size=batch_size * world, **settings) as whole:
        wanted = [windows_of(batch) for batch in whole]
    ranks = []
    for rank in range(world):
        with headrace.WindowLoader(
            index, "train", batch_size=batch_size, rank=rank, world_size=world, **settings
        ) as loader:
            ranks.append([windows_of(batch) for batch in loader])
            assert len(ranks[-1]) == len(loader)
    assert len({len(own) for own in ranks}) == 1
    served = [[w for own in ranks for w in own[number]] for number in range(len(ranks[0]))]
    assert sorted(w for batch in served for w in batch) == sorted(w for batch in wanted for w in batch)
    assert served[:-1] == wanted[: len(served) - 1]


@pytest.mark.parametrize(
    "given", [{"rank": 0}, {"world_size": 2}, {"rank": 2, "world_size": 2}, {"rank": -1, "world_size": 2}]
)
def test_a_rank_outside_its_world_is_refused(index, given):
    with pytest.raises(ConfigError, match="rank"):
        headrace.WindowLoader(index, "train", **given)


def test_fewer_windows_than_ranks_are_refused_at_once(index):
    with pytest.raises(ConfigError, match="fewer windows than ranks"):
        headrace.WindowLoader(index, "train", rank=0, world_size=10_000)


def test_an_automatic_budget_that_ranks_cannot_agree_on_is_refused(index, monkeypatch):
    monkeypatch.setattr("headrace.loader.settings.memory_budget_nbytes", lambda _: 2400)
    with pytest.raises(ConfigError, match="auto differs"):
        headrace.WindowLoader(index, "train", rank=0, world_size=2)
    headrace.WindowLoader(index, "train").close()
