"""Rounds read ahead: as many as asked for, within the same memory, with the same windows."""

import threading
import time

import pytest

import headrace
from headrace.loader.device import CopyBatches
from headrace.loader.group_fetch import GroupFetches
from headrace.loader.rounds import RoundQueue
from headrace.schemas.errors import ConfigError
from lazy_lane import LazyLane
from oracle_loader import windows_of

BUDGET = 4800


def opened(index: headrace.Index, **settings) -> headrace.WindowLoader:
    given = {"batch_size": 8, "seed": 5, "num_workers": 2, "memory_budget": BUDGET, **settings}
    return headrace.WindowLoader(index, "train", **given)


def content(batch: headrace.Batch):
    return windows_of(batch), batch.x.numpy().tobytes(), batch.y.numpy().tobytes()


@pytest.mark.parametrize("cache_dir", [None, "off"])
@pytest.mark.parametrize("factor", [1, 2, 4])
def test_so_many_rounds_are_ready_beside_the_one_served_and_no_more(index, factor, cache_dir):
    with opened(index, prefetch_factor=factor, cache_dir=cache_dir) as loader:
        serving, plan = loader.serving, loader.plan()
        assert (1 + factor) * serving.round_steps * serving.row_nbytes <= BUDGET
        assert (1 + factor) * (serving.round_steps + 1) * serving.row_nbytes > BUDGET
        assert plan.num_rounds > 2 + factor
        queue = RoundQueue(loader._engine.rounds, plan, range(plan.num_rounds))
        ready = [queue.get(number) for number in range(1 + factor)]
        waits = queue._pools[1 + factor]
        assert not waits.done()
        queue.done(0)
        assert queue.get(1 + factor).x_rows.data_ptr() == ready[0].x_rows.data_ptr()
        queue.close()


@pytest.mark.parametrize("cache_dir", [None, "off"])
def test_reads_that_are_cancelled_before_they_begin_are_not_expected_any_longer(index, monkeypatch, cache_dir):
    forgotten, go_on = [], threading.Event()
    monkeypatch.setattr(GroupFetches, "forget", lambda _, group: forgotten.append(group))
    with opened(index, cache_dir=cache_dir, num_workers=1) as loader:
        rounds, readers = loader._engine.rounds, loader._engine.readers
        readers.submit(go_on.wait)
        queue = RoundQueue(rounds, loader.plan(), range(2))
        while not (rounds._reader._futures or rounds._reader._passing):
            time.sleep(0.001)
        queue.close()
        readers.shutdown(wait=False, cancel_futures=True)
        go_on.set()
    assert forgotten


def test_windows_and_values_are_the_same_however_many_rounds_are_read_ahead(index):
    with opened(index, memory_budget="1GiB") as loader:
        wanted = sorted(window for batch in loader for window in windows_of(batch))
    for factor in (1, 3):
        with opened(index, prefetch_factor=factor) as loader:
            assert not loader.resident
            assert sorted(window for batch in loader for window in windows_of(batch)) == wanted


def test_a_budget_for_fewer_rounds_is_refused_with_what_is_needed(index):
    with opened(index) as loader:
        least = loader.window.length * loader.serving.row_nbytes
    with pytest.raises(ConfigError, match=rf"at least {6 * least} bytes: 6 pools of one window each"):
        opened(index, memory_budget=3 * least, prefetch_factor=5)
    with pytest.raises(ConfigError, match="prefetch_factor"):
        opened(index, prefetch_factor=0)


def test_a_state_goes_on_with_fewer_rounds_ahead_and_needs_memory_for_more(index):
    with opened(index, prefetch_factor=3) as loader:
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        rest = [content(batch) for batch in batches]
    with opened(index, prefetch_factor=1) as loader:
        loader.load_state_dict(state)
        assert [content(batch) for batch in loader] == rest
    with opened(index, prefetch_factor=1) as loader:
        next(iter(loader))
        larger = loader.state_dict()
    with opened(index, prefetch_factor=3) as loader, pytest.raises(ConfigError, match="memory_budget is too small"):
        loader.load_state_dict(larger)


def test_a_device_holds_as_many_rounds(index, monkeypatch):
    with opened(index, prefetch_factor=3) as loader:
        wanted = [content(batch) for batch in loader]
    monkeypatch.setattr("headrace.loader.device.lane_of", lambda _: LazyLane())
    with opened(index, prefetch_factor=3) as loader:
        assert [content(batch) for batch in loader] == wanted
        assert len(loader._transfer.rounds(loader._engine.rounds)._buffers) == 4


def test_without_cuda_prefetch_a_batch_is_copied_when_it_is_asked_for(index, monkeypatch):
    lane = LazyLane()
    monkeypatch.setattr("headrace.loader.device.lane_of", lambda _: lane)
    with opened(index, memory_budget="1GiB", cuda_prefetch=False) as loader:
        assert isinstance(loader._transfer, CopyBatches)
        seen = 0
        for batch in loader:
            seen += sum(getattr(batch, name).nbytes for name in batch.__slots__)
            assert sum(lane.copied) == seen
            assert not lane._queued


def test_no_worker_is_one(index):
    with opened(index, num_workers=0) as loader:
        assert loader.num_workers == 1
        assert next(iter(loader)).start.shape == (8,)
