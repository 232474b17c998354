"""One pair of stores and one index for all tests that only read them."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

import headrace
from joint_stores import Joint, write_joint


@pytest.fixture(scope="session")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Joint:
    return write_joint(tmp_path_factory.mktemp("joint"))


@pytest.fixture(scope="session")
def index(joint: Joint) -> Iterator[headrace.Index]:
    with headrace.open_index(joint.index) as opened:
        yield opened


@pytest.fixture
def three_intra_op_threads() -> Iterator[None]:
    """What torch uses outside the loader differs from what gather threads use, whatever the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("headrace-")]


@pytest.fixture(autouse=True)
def _no_thread_is_left_behind() -> Iterator[None]:
    """A thread whose executor was dropped, not joined, needs a moment to see it."""
    yield
    for _ in range(200):
        if not own_threads():
            return
        time.sleep(0.01)
    assert own_threads() == []
