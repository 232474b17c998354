"""Closing, breaking off and letting go: no thread, no memory, no file stays behind."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import pytest
import torch

import headrace
from headrace.loader.pool import Pool
from headrace.loader.stream import EpochStream
from headrace.store import StoredArray

BUDGETS = ["1GiB", 2400]


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("headrace-")]


def opened(index: headrace.Index, budget: object, **settings: object) -> headrace.WindowLoader:
    given = {"batch_size": 32, "num_workers": 2, "memory_budget": budget, **settings}
    return headrace.WindowLoader(index, "train", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("batches", [0, 1, 5, 10_000])
def test_close_joins_every_thread_wherever_the_epoch_stands(index, budget, batches):
    loader = opened(index, budget)
    running = iter(loader)
    for _ in range(batches):
        if next(running, None) is None:
            break
    loader.close()
    assert own_threads() == []
    loader.close()


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_break_stops_the_threads_of_the_epoch(index, budget):
    with opened(index, budget) as loader:
        for _ in loader:
            break
        assert {name.rsplit("_")[0] for name in own_threads()} <= {"headrace-read"}


@pytest.mark.parametrize("budget", BUDGETS)
def test_an_error_in_the_loop_stops_the_threads(index, budget):
    def consume() -> None:
        with opened(index, budget) as loader:
            for _ in loader:
                raise KeyError("the consumer's own")

    with pytest.raises(KeyError):
        consume()
    assert own_threads() == []


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_loader_that_is_let_go_takes_its_threads_with_it(index, budget):
    loader = opened(index, budget)
    running = iter(loader)
    next(running)
    gone = weakref.ref(loader)
    del running, loader
    gc.collect()
    assert gone() is None
    for _ in range(200):
        if not own_threads():
            break
        time.sleep(0.01)
    assert own_threads() == []


def test_a_closed_loader_says_so_and_still_knows_its_numbers(index):
    loader = opened(index, 2400)
    served = sum(len(batch) for batch in loader)
    read = loader.chunks_read, loader.bytes_read
    loader.close()
    assert (loader.chunks_read, loader.bytes_read) == read
    assert loader.num_windows == served
    assert "windows=" in repr(loader)
    with pytest.raises(RuntimeError, match="closed"):
        next(iter(loader))
    with pytest.raises(RuntimeError, match="closed"):
        loader.load_state_dict(loader.state_dict())


@pytest.mark.parametrize("budget", BUDGETS)
def test_closing_frees_the_rows_but_not_the_batches_in_use(index, budget):
    loader = opened(index, budget)
    batches = list(loader)
    copies = [batch.x.clone() for batch in batches]
    assert loader._engine is not None
    rows = weakref.ref(loader._engine.rows.x)
    loader.close()
    gc.collect()
    assert rows() is None
    assert all(torch.equal(batch.x, copy) for batch, copy in zip(batches, copies, strict=True))


@pytest.mark.parametrize("budget", BUDGETS)
def test_batches_kept_by_the_consumer_are_never_overwritten(index, budget):
    with opened(index, budget) as loader:
        kept, copies = [], []
        for _ in range(3):
            for batch in loader:
                kept.append(batch)
                copies.append((batch.x.clone(), batch.y.clone(), batch.start.clone()))
        for batch, (x, y, start) in zip(kept, copies, strict=True):
            assert torch.equal(batch.x, x)
            assert torch.equal(batch.y.nan_to_num(), y.nan_to_num())
            assert torch.equal(batch.start, start)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_consumer_may_write_into_its_batch(index, budget):
    with opened(index, budget, shuffle=False) as loader:
        first = [batch.x.clone() for batch in loader]
        for batch in loader:
            for tensor in (batch.x, batch.y, batch.static, batch.start, batch.basin, batch.dataset):
                tensor.zero_()
        again = [batch.x for batch in loader]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.usefixtures("three_intra_op_threads")
def test_gather_threads_compute_alone_and_the_consumer_as_before(index, monkeypatch):
    """Field case E8: many batches at once, one thread each."""
    inside: set[int] = set()
    gather = Pool.gather

    def counted(self: Pool, *places: Any) -> None:
        inside.add(torch.get_num_threads())
        gather(self, *places)

    monkeypatch.setattr(Pool, "gather", counted)
    with opened(index, "1GiB") as loader:
        list(loader)
    assert inside == {1}
    assert torch.get_num_threads() == 3


def test_each_stored_chunk_is_read_once_for_all_epochs(index):
    """Field case E9: also where the split is many times the memory budget."""
    for budget in BUDGETS:
        with opened(index, budget) as loader:
            list(loader)
            read = loader.chunks_read
            list(loader)
            assert loader.chunks_read == read


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("workers", [1, 2])
def test_closing_from_another_thread_ends_the_iteration_with_a_plain_error(index, budget, workers):
    loader = opened(index, budget, batch_size=1, num_workers=workers)
    begun, found = threading.Event(), []

    def consume() -> None:
        try:
            while True:
                for _ in loader:
                    begun.set()
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=consume)
    thread.start()
    begun.wait(30)
    loader.close()
    thread.join(30)
    assert not thread.is_alive()
    assert type(found[0]) is RuntimeError
    assert "closed" in str(found[0])


def test_closing_while_a_chunk_is_read_ends_the_iteration_with_a_plain_error(index, monkeypatch):
    reading, release, found = threading.Event(), threading.Event(), []
    read = StoredArray.read

    def slow(*given: Any) -> Any:
        reading.set()
        release.wait(30)
        return read(*given)

    monkeypatch.setattr(StoredArray, "read", slow)
    loader = opened(index, "1GiB")

    def consume() -> None:
        try:
            list(loader)
        except RuntimeError as error:
            found.append(error)

    threads = [threading.Thread(target=consume), threading.Thread(target=lambda: reading.wait(30) and loader.close())]
    for thread in threads:
        thread.start()
    threads[0].join(20)
    release.set()
    for thread in threads:
        thread.join(30)
    assert type(found[0]) is RuntimeError
    assert "closed" in str(found[0])


def test_threads_that_begin_an_epoch_at_once_do_not_share_its_buffers(index, monkeypatch):
    under_way, most = [0], [0]

    class Slow(EpochStream):
        def __init__(self, *args: Any, **settings: Any) -> None:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            time.sleep(0.02)
            super().__init__(*args, **settings)
            under_way[0] -= 1

    monkeypatch.setattr("headrace.loader.window_loader.EpochStream", Slow)
    together, over = threading.Barrier(3), list[str]()

    def consume() -> None:
        together.wait()
        try:
            list(loader)
        except RuntimeError as error:
            over.append(str(error))

    with headrace.WindowLoader(index, "train", batch_size=16, memory_budget=2400) as loader:
        threads = [threading.Thread(target=consume) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == [1]
        assert all("iterated again" in error for error in over)


def test_a_loader_is_not_sent_to_another_process(index):
    with opened(index, "1GiB") as loader:
        for send in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError, match="cannot be copied or sent to another process"):
                send(loader)


def test_tables_are_read_before_any_thread_starts_and_never_again(index, monkeypatch):
    """Field cases E3 and E4: one thread asks DuckDB, and what it answers is handed over as arrays."""
    asked: list[str] = []
    fetch = headrace.Index.fetch

    def seen(self: headrace.Index, name: str, **parameters: object) -> object:
        asked.append(threading.current_thread().name)
        return fetch(self, name, **parameters)

    monkeypatch.setattr(headrace.Index, "fetch", seen)
    with opened(index, 2400) as loader:
        assert set(asked) == {threading.current_thread().name}
        asked.clear()
        list(loader)
        loader.load_state_dict(loader.state_dict())
        list(loader)
    assert asked == []


FORK = """
import os, sys, headrace
with headrace.open_index(sys.argv[1]) as index, headrace.WindowLoader(index, "train", batch_size=32) as loader:
    next(iter(loader))
    child = os.fork()
    if child == 0:
        try:
            next(iter(loader))
        except RuntimeError as error:
            os._exit(7 if "another process" in str(error) else 8)
        os._exit(9)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_is_refused_instead_of_hanging(index):
    """Field cases E1 and E2: the threads of the parent do not exist in the child, and no codec runs there."""
    found = subprocess.run([sys.executable, "-c", FORK, str(index.path)], timeout=120, check=False)
    assert found.returncode == 7
