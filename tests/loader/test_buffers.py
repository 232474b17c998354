"""Batch memory: never overwritten while somebody looks at it, used again once nobody does."""

import gc
import threading

import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.loader.buffers import BufferPool


def address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def test_memory_is_used_again_once_dropped():
    pool = BufferPool()
    first = pool.take((4, 3))
    place = address(first)
    del first
    assert address(pool.take((3, 4))) == place  # the size counts, not the shape


def test_tensors_alive_never_share_memory():
    pool = BufferPool()
    kept = [pool.take((2, 5)) for _ in range(20)]
    assert len({address(t) for t in kept}) == 20


def test_whatever_looks_at_a_batch_keeps_its_memory():
    pool = BufferPool()
    for look in (
        lambda t: t[1:],
        lambda t: t.numpy(),
        lambda t: t.numpy()[0],
        lambda t: t.view(-1),
        torch.Tensor.detach,
    ):
        batch = pool.take((4, 4)).fill_(7.0)
        view = look(batch)
        del batch
        gc.collect()
        others = [pool.take((4, 4)).fill_(0.0) for _ in range(4)]
        assert (torch.as_tensor(view) == 7.0).all()
        del others, view


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_any_order_of_taking_and_dropping_keeps_values(steps):
    pool = BufferPool()
    alive: list[tuple[torch.Tensor, float]] = []
    for number, (size, drop) in enumerate(steps):
        alive.append((pool.take((size, 2)).fill_(float(number)), float(number)))
        if drop:
            alive.pop(number % len(alive))
        assert all((t == value).all() for t, value in alive)


def test_threads_may_take_and_drop_at_once():
    pool = BufferPool()
    wrong: list[int] = []

    def work(name: int) -> None:
        for _ in range(300):
            mine = [pool.take((8, 8)).fill_(float(name)) for _ in range(3)]
            wrong.extend(name for t in mine if not (t == float(name)).all())

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_pool_may_go_before_its_tensors():
    pool = BufferPool()
    batch = pool.take((3, 3)).fill_(1.0)
    del pool
    gc.collect()
    assert (batch == 1.0).all()
