"""Batches on a GPU are those of the CPU bit for bit, whether the rounds fit there or not."""

from itertools import islice
from typing import Any

import pytest
import torch

import headrace
from headrace.loader.device import CopyBatches, GatherOnDevice
from joint_stores import write_joint

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU and a build of torch that uses it"),
]

BUDGETS = {"resident": "1GiB", "in rounds": 2400}
WAYS = {"rounds": (GatherOnDevice, None), "batches": (CopyBatches, 1)}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with headrace.open_index(write_joint(tmp_path_factory.mktemp("joint")).index) as index:
        yield index


def opened(index: headrace.Index, budget: str, **settings: Any) -> headrace.WindowLoader:
    given = {"batch_size": 32, "seed": 5, "num_workers": 2, "memory_budget": BUDGETS[budget], **settings}
    return headrace.WindowLoader(index, "train", **given)


def same(one: headrace.Batch, other: headrace.Batch) -> bool:
    return all(
        torch.equal(a.cpu().view(torch.int32), b.cpu().view(torch.int32))
        for a, b in ((getattr(one, name), getattr(other, name)) for name in one.__slots__)
    )


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("way", WAYS)
def test_batches_are_those_of_the_cpu_bit_for_bit(index, budget, way):
    kind, room = WAYS[way]
    with opened(index, budget) as host, opened(index, budget, device="cuda", device_memory_budget=room) as loader:
        assert type(loader._transfer) is kind
        for _ in range(3):
            for batch, wanted in zip(loader, host, strict=True):
                assert {getattr(batch, name).device.type for name in batch.__slots__} == {"cuda"}
                assert same(batch, wanted)


@pytest.mark.parametrize("way", WAYS)
def test_kept_batches_stay_what_they_were_while_memory_is_used_again(index, way):
    with opened(index, "in rounds") as host:
        wanted = list(host)
    with opened(index, "in rounds", device="cuda", device_memory_budget=WAYS[way][1]) as loader:
        kept = []
        for batch in loader:
            torch.cuda._sleep(1_000_000)  # the GPU lags behind the host
            kept.append(batch)
    assert len(kept) == len(wanted)
    assert all(same(one, other) for one, other in zip(kept, wanted, strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_batches_are_ready_for_the_stream_they_are_used_on(index, way):
    with opened(index, "resident") as host:
        wanted = list(host)
    stream = torch.cuda.Stream()
    with (
        opened(index, "resident", device="cuda", device_memory_budget=WAYS[way][1]) as loader,
        torch.cuda.stream(stream),
    ):
        sums = [batch.x.double().sum() for batch in loader]
        stream.synchronize()
    assert [float(s) for s in sums] == pytest.approx([float(b.x.double().sum()) for b in wanted])


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("way", WAYS)
def test_closing_while_copies_are_under_way_frees_the_memory_and_the_threads(index, budget, way):
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    with opened(index, budget, device="cuda", device_memory_budget=WAYS[way][1]) as loader:
        list(islice(loader, 2))
    del loader
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before
