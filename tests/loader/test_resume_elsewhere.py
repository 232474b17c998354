"""An epoch that one group of ranks began and another ends: other ranks, batches and threads; after a kill (H3)."""

import json
import signal
import subprocess
import sys
from itertools import islice
from typing import Any

import pytest

import headrace
from oracle_loader import windows_of


def opened(index: headrace.Index, **settings: Any) -> headrace.WindowLoader:
    given = {"batch_size": 64, "seed": 5, "num_workers": 2, "memory_budget": "1GiB", **settings}
    return headrace.WindowLoader(index, "train", **given)


def rest_of(loader: headrace.WindowLoader) -> list[tuple[int, int, int]]:
    return [window for batch in loader for window in windows_of(batch)]


def some_of(loader: headrace.WindowLoader, batches: int) -> list[tuple[int, int, int]]:
    return [window for batch in islice(loader, batches) for window in windows_of(batch)]


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_short_epoch_keeps_its_length_with_other_ranks_and_batches(index, shuffle):
    """An epoch of 6 batches × 2 ranks × 16 windows has 192 windows, whoever ends it."""
    short = {"sampling": {"max_batches_per_epoch": 6}, "shuffle": shuffle}
    with opened(index, batch_size=192, sampling={"max_batches_per_epoch": 1}, shuffle=shuffle) as loader:
        whole = sorted(rest_of(loader))
    for world, batch_size in ((1, 16), (3, 10), (2, 16), (4, 64)):
        served: list[tuple[int, int, int]] = []
        for rank in range(2):
            with opened(index, batch_size=16, rank=rank, world_size=2, **short) as loader:
                served += some_of(loader, 2)
                state = loader.state_dict()
        assert (state["windows_consumed"], state["epoch_windows"]) == (64, 192)
        for rank in range(world):
            with opened(index, batch_size=batch_size, rank=rank, world_size=world, **short) as loader:
                loader.load_state_dict(state)
                served += rest_of(loader)
                # the next epoch is the loader's own
                assert loader.state_dict()["epoch_windows"] == min(6 * batch_size * world, loader.num_windows)
        assert sorted(served) == whole


def test_fewer_windows_left_than_ranks_give_some_an_empty_batch(index):
    with opened(index, batch_size=1) as loader:
        whole = rest_of(loader)
    with opened(index, batch_size=1) as loader:
        done = some_of(loader, len(whole) - 2)
        state = loader.state_dict()
    sizes = []
    for rank in range(4):
        with opened(index, batch_size=8, rank=rank, world_size=4) as loader:
            loader.load_state_dict(state)
            rest = list(loader)
            assert loader.epoch == 1
        assert len(rest) == 1
        assert rest[0].x.shape[1:] == (7, 2)
        sizes.append(len(rest[0]))
        done += windows_of(rest[0])
    assert sizes == [1, 1, 0, 0]
    assert done == whole


KILLED = """
import json, os, signal, sys, headrace
with headrace.open_index(sys.argv[1]) as index:
    loader = headrace.WindowLoader(index, "train", batch_size=20, seed=5, memory_budget=2400, num_workers=3)
    for number, batch in enumerate(loader):
        columns = (batch.dataset.tolist(), batch.basin.tolist(), batch.start.tolist())
        print(json.dumps([list(zip(*columns)), loader.state_dict()]), flush=True)
        if number == 4:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_other_ranks_threads_and_memory_serve_exactly_the_rest(index):
    """Field case H3: stopped by kill -9 in mid-epoch."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(index.path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    served = [tuple(window) for windows, _ in lines for window in windows]
    for rank in range(3):
        with opened(index, memory_budget="1GiB", batch_size=16, num_workers=1, rank=rank, world_size=3) as loader:
            loader.load_state_dict(lines[-1][1])
            served += rest_of(loader)
    with opened(index) as loader:
        assert sorted(served) == sorted(rest_of(loader))
