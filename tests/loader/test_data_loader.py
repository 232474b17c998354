"""PyTorch's ``DataLoader`` with worker processes over ``WindowDataset`` (E1–E3, E6, E8, E14, H6, H7)."""

import multiprocessing
from typing import Any

import pytest
from torch.utils.data import DataLoader

import headrace
from oracle_loader import windows_of


def loader_of(index: headrace.Index, workers: int, context: str | None, **settings: Any) -> DataLoader:
    dataset = headrace.WindowDataset(index, "train", memory_budget=60_000)
    sampler = headrace.ChunkBatchSampler(dataset, batch_size=64, seed=2)
    return DataLoader(
        dataset, batch_sampler=sampler, collate_fn=dataset.collate, num_workers=workers,
        multiprocessing_context=context, timeout=120 if workers else 0, **settings,
    )  # fmt: skip


def rows_of(batches: list[headrace.Batch]) -> dict[tuple[int, int, int], bytes]:
    """What every window holds, by window; a window that comes twice is an error."""
    rows: dict[tuple[int, int, int], bytes] = {}
    for batch in batches:
        for place, window in enumerate(windows_of(batch)):
            assert window not in rows
            rows[window] = b"".join(getattr(batch, n)[place].numpy().tobytes() for n in ("x", "static", "y"))
    return rows


def served_by_threads(index: headrace.Index) -> dict[tuple[int, int, int], bytes]:
    with headrace.WindowLoader(index, "train", batch_size=100, num_workers=1) as loader:
        return rows_of(list(loader))


@pytest.fixture(scope="module", autouse=True)
def _fork_server_has_imported_the_loader() -> None:
    """Workers are then forked from a process that has all imports and has done nothing yet: seconds saved for each."""
    multiprocessing.set_forkserver_preload(["headrace.loader.dataset"])


@pytest.fixture(scope="module")
def unparallel(index) -> list[list[headrace.Batch]]:
    """Three epochs in this process."""
    loader = loader_of(index, 0, None)
    return [list(loader) for _ in range(3)]


def same_batches(one: list[headrace.Batch], other: list[headrace.Batch]) -> bool:
    return [windows_of(b) for b in one] == [windows_of(b) for b in other] and rows_of(one) == rows_of(other)


def test_without_workers_an_epoch_is_what_the_loader_serves(index, unparallel):
    wanted = served_by_threads(index)
    for epoch in unparallel:
        assert rows_of(epoch) == wanted


def test_persistent_workers_from_a_fork_server_serve_each_epoch_its_own_order(index, unparallel):
    loader = loader_of(index, 2, "forkserver", persistent_workers=True)
    assert same_batches(list(loader), unparallel[0])
    assert same_batches(list(loader), unparallel[1])
    loader.batch_sampler.set_epoch(0)
    assert same_batches(list(loader), unparallel[0])


def test_a_spawned_worker_serves_the_same(index, unparallel):
    assert same_batches(list(loader_of(index, 1, "spawn")), unparallel[0])


@pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes")
def test_four_workers_serve_the_same(index, unparallel):
    assert same_batches(list(loader_of(index, 4, "forkserver")), unparallel[0])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_worker_is_refused_with_what_to_do(index):
    with pytest.raises(RuntimeError, match=r'multiprocessing_context="forkserver".*"spawn".*__main__'):
        list(loader_of(index, 1, "fork"))
