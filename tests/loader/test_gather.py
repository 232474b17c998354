"""Finding the piece a window lies in, and what gather threads leave behind."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.loader.pool import PieceFinder, RoundWindows

PIECES = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 400), st.just(100_000)), min_size=1, max_size=300)


@given(sizes=PIECES, seed=st.integers(0, 9), constant=st.booleans())
def test_a_window_lies_in_the_piece_that_binary_search_finds(sizes, seed, constant):
    done = np.append(0, np.cumsum(sizes))
    edges = np.concatenate([done[:-1], done[1:] - 1])
    rng = np.random.default_rng(seed)
    windows = np.concatenate([edges, rng.integers(0, done[-1], 200)])
    piece = np.searchsorted(done, windows, side="right") - 1
    stride: int | np.ndarray = 3 if constant else rng.integers(1, 9, len(sizes))
    first = rng.integers(0, 1 << 20, (3, len(sizes)))
    pieces = RoundWindows(done=done, row=first[0], slot=first[1], start=first[2].astype(np.int32), stride=stride)
    row, slot, start = pieces.locate(windows, None, PieceFinder(done))
    ahead = (windows - done[piece]) * np.broadcast_to(stride, len(sizes))[piece]
    np.testing.assert_array_equal(row, first[0][piece] + ahead)
    np.testing.assert_array_equal(slot, first[1][piece])
    np.testing.assert_array_equal(start, first[2][piece] + ahead)


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
