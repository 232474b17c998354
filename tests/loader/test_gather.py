"""Finding the piece a window lies in, and what gather threads leave behind."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.loader.pool import PieceFinder

PIECES = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 400), st.just(100_000)), min_size=1, max_size=300)


@given(sizes=PIECES, seed=st.integers(0, 9))
def test_the_piece_of_a_window_is_the_one_binary_search_finds(sizes, seed):
    done = np.append(0, np.cumsum(sizes))
    edges = np.concatenate([done[:-1], done[1:] - 1])
    windows = np.concatenate([edges, np.random.default_rng(seed).integers(0, done[-1], 200)])
    np.testing.assert_array_equal(PieceFinder(done)(windows), np.searchsorted(done, windows, side="right") - 1)


@pytest.mark.usefixtures("three_intra_op_threads")
def test_gather_threads_do_not_change_how_many_threads_torch_uses_elsewhere(index: headrace.Index) -> None:
    seen = []
    with headrace.WindowLoader(index, "train", batch_size=16, num_workers=3) as loader:
        for _ in loader:
            later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
            later.start()
            later.join()
    assert seen
    assert {torch.get_num_threads(), *seen} == {3}


def test_closing_from_another_thread_ends_the_iteration_with_a_plain_error(index: headrace.Index) -> None:
    loader = headrace.WindowLoader(index, "train", batch_size=1, num_workers=2)
    said: list[str] = []
    begun = threading.Event()

    def consume() -> None:
        try:
            for _ in loader:
                begun.set()
                closed.wait()
        except RuntimeError as error:
            said.append(str(error))

    closed = threading.Event()
    consumer = threading.Thread(target=consume)
    consumer.start()
    begun.wait()
    loader.close()
    closed.set()
    consumer.join()
    assert said == ["this iteration is over: the loader was closed or iterated again"]
