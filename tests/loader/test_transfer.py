"""The way to a device, on one that puts off copies as long as it may: same batches, nothing overwritten too soon."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.loader.buffered_rounds import RoundClosedError
from headrace.loader.device import CopyBatches, GatherOnDevice, StayOnHost
from headrace.loader.device_rounds import merged
from headrace.loader.upload import Upload
from headrace.schemas.errors import ConfigError
from lazy_lane import LazyLane
from oracle_loader import windows_of

BUDGETS = {"resident": "1GiB", "in rounds": 2400}
WAYS = {"rounds": (GatherOnDevice, None), "batches": (CopyBatches, 1)}


@pytest.fixture
def lane(monkeypatch) -> LazyLane:
    lane = LazyLane()
    monkeypatch.setattr("headrace.loader.device.lane_of", lambda _: lane)
    return lane


def opened(index: headrace.Index, budget: str = "resident", **settings: Any) -> headrace.WindowLoader:
    given = {"batch_size": 32, "seed": 5, "num_workers": 2, "memory_budget": BUDGETS[budget], **settings}
    return headrace.WindowLoader(index, "train", **given)


def content(batches: list[headrace.Batch]) -> list[tuple[Any, ...]]:
    return [(windows_of(b), *(getattr(b, n).numpy().tobytes() for n in ("x", "y", "static"))) for b in batches]


@pytest.fixture(scope="module")
def on_host(index) -> Callable[[str], list[list[tuple[Any, ...]]]]:
    """Three epochs of the CPU's loader by budget."""
    epochs = {}
    for budget in BUDGETS:
        with opened(index, budget) as loader:
            assert isinstance(loader._transfer, StayOnHost)
            epochs[budget] = [content(list(loader)) for _ in range(3)]
    return epochs.__getitem__


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("way", WAYS)
def test_batches_are_those_of_the_host_bit_for_bit_in_every_epoch(index, lane, on_host, budget, way):
    kind, room = WAYS[way]
    with opened(index, budget, device_memory_budget=room) as loader:
        assert type(loader._transfer) is kind
        for epoch in on_host(budget):
            assert content(list(loader)) == epoch


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("way", WAYS)
def test_after_a_break_and_from_a_state_the_rest_is_right(index, lane, on_host, budget, way):
    wanted, room = on_host(budget), WAYS[way][1]
    with opened(index, budget, device_memory_budget=room) as loader:
        assert content(list(islice(loader, 3))) == wanted[0][:3]
        state = loader.state_dict()
        assert content(list(loader)) == wanted[0]
        loader.load_state_dict(state)
        assert content(list(loader)) == wanted[0][3:]
        assert content(list(islice(loader, 1))) == wanted[1][:1]
    assert loader.epoch == 1


def test_rows_of_a_resident_split_cross_the_bus_in_the_first_epoch_only(index, lane):
    with opened(index) as loader:
        list(loader)
        rows = 4 * 3 * loader._serving.shape.layout.num_rows
        first = sum(lane.copied)
        list(loader)
        second = sum(lane.copied) - first
    places = loader.num_windows * (3 * 8 + 3 * 4)
    assert second == places
    assert rows + places <= first <= 2 * rows + places  # tiles of different rounds share the halo between them
    lane.copied.clear()
    with opened(index, device_memory_budget=1) as loader:
        batches = list(loader)
    assert sum(lane.copied) == sum(getattr(b, name).nbytes for b in batches for name in b.__slots__)


def test_what_fits_decides_and_a_quarter_of_the_free_memory_is_the_default(index, monkeypatch):
    needed = {}
    for free in (400, 10_000, 60_000, 10**9):
        monkeypatch.setattr("headrace.loader.device.lane_of", lambda _, free=free: LazyLane(free))
        with opened(index) as loader:
            needed[free] = type(loader._transfer)
    assert list(needed.values()) == [CopyBatches, CopyBatches, GatherOnDevice, GatherOnDevice]


def test_what_is_no_size_or_number_is_refused_by_name(index):
    for wrong in ({"device_memory_budget": "much"}, {"cuda_prefetch_batches": 0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            opened(index, **wrong)


def made(number: int) -> headrace.Batch:
    few = torch.full((2,), number, dtype=torch.int32)
    values = torch.full((2, 3, 1), float(number))
    return headrace.Batch(x=values, y=values[:, :1], static=values[:, 0], dataset=few, basin=few, start=few)


def test_an_error_comes_after_the_batches_before_it():
    def failing() -> Iterator[headrace.Batch]:
        yield from (made(number) for number in range(3))
        raise OSError("the disk is gone")

    handed = CopyBatches(LazyLane(), 5).batches(failing())
    for number in range(3):
        batch = next(handed)
        assert batch.x.unique().tolist() == batch.start.unique().tolist() == [number]
    with pytest.raises(OSError, match="the disk is gone"):
        next(handed)


def test_copies_go_ahead_of_use_by_as_many_batches_as_asked():
    asked = []

    def counting() -> Iterator[headrace.Batch]:
        for number in range(10):
            asked.append(number)
            yield made(number)

    handed = CopyBatches(LazyLane(), 3).batches(counting())
    for number in range(10):
        assert int(next(handed).start[0]) == number
        assert len(asked) == min(number + 4, 10)
    assert next(handed, None) is None


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 16), st.integers(1, 3))
def test_an_upload_keeps_every_value_although_its_buffers_take_turns(sizes, buffer_values, calls):
    lane = LazyLane()
    upload = Upload(lane, buffer_values)
    for _ in range(calls):
        sources = [torch.randn(size) for size in sizes]
        wanted = [source.clone() for source in sources]
        targets = [lane.empty((size,), torch.float32) for size in sizes]
        ready = upload.send(zip(targets, sources, strict=True), Future())
        for source in sources:
            source.fill_(-1)  # the host's rows may be overwritten as soon as send has returned
        lane.wait(ready)
        assert all(torch.equal(got, want) for got, want in zip(targets, wanted, strict=True))
    upload.finish()


def test_an_upload_that_nobody_wants_any_more_ends():
    stop: Future[None] = Future()
    stop.set_result(None)
    lane = LazyLane()
    with pytest.raises(RoundClosedError):
        Upload(lane, 4).send([(lane.empty((100,), torch.float32), torch.zeros(100))], stop)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=12))
def test_merged_ranges_cover_the_same_rows_without_overlap(ranges):
    begin = np.array([b for b, _ in ranges], dtype=np.int64)
    found = merged(begin, begin + np.array([n for _, n in ranges], dtype=np.int64))
    covered = [row for b, e in found for row in range(b, e)]
    assert covered == sorted({row for b, n in ranges for row in range(b, b + n)})
    assert all(e < b for (_, e), (b, _) in pairwise(found))


@pytest.mark.parametrize("way", WAYS)
def test_a_fault_while_reading_reaches_the_consumer_and_the_loader_goes_on(index, lane, on_host, monkeypatch, way):
    from headrace.store import StoredArray

    read = StoredArray.read
    with opened(index, "in rounds", device_memory_budget=WAYS[way][1]) as loader:
        with monkeypatch.context() as patched:
            patched.setattr(StoredArray, "read", lambda *_: (_ for _ in ()).throw(OSError("no route")))
            with pytest.raises(OSError, match="no route"):
                list(loader)
        assert StoredArray.read is read
        assert content(list(loader)) == on_host("in rounds")[0]


@pytest.mark.parametrize("size", [150, 1000])
def test_a_batch_may_reach_over_more_rounds_than_the_device_holds(index, lane, size):
    with opened(index, "in rounds", batch_size=size) as host:
        assert size > 3 * np.diff(host.plan().window_cuts).max()
        wanted = content(list(host))
    with opened(index, "in rounds", batch_size=size, device_memory_budget=None, timeout=60) as loader:
        assert isinstance(loader._transfer, GatherOnDevice)
        assert content(list(loader)) == wanted
