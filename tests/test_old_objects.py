"""Collections pass over old objects while long work runs, and find them again afterwards."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from headrace.old_objects import old_objects_spared


@pytest.fixture(autouse=True)
def _nothing_frozen() -> Iterator[None]:
    """The suite itself freezes what it has imported."""
    gc.unfreeze()
    yield
    gc.freeze()


class Knot:
    """Refers to itself, so that only a collection can remove it."""

    def __init__(self) -> None:
        self.itself = self


def test_old_garbage_waits_and_new_garbage_goes():
    gc.collect()
    old = Knot()
    seen = weakref.ref(old)
    with old_objects_spared():
        del old
        new = weakref.ref(Knot())
        gc.collect()
        assert new() is None
        assert seen() is not None
    gc.collect()
    assert seen() is None
    assert gc.get_freeze_count() == 0


def test_old_garbage_does_not_wait_for_the_end_of_long_work():
    seen = weakref.ref(Knot())
    with old_objects_spared(collect=True):
        assert seen() is None


def test_what_a_caller_has_frozen_stays_frozen():
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with old_objects_spared():
            assert gc.get_freeze_count() == count
        assert gc.get_freeze_count() == count
    finally:
        gc.unfreeze()


def test_it_ends_with_an_error_and_decorates():
    @old_objects_spared()
    def fails() -> None:
        assert gc.get_freeze_count() > 0
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            fails()
        assert gc.get_freeze_count() == 0
