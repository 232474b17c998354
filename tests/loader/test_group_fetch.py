"""What is asked for before it is decoded: pieces of a group in turn, first pieces of the next groups within limits."""

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace.loader.group_fetch import GroupFetch, GroupFetches
from headrace.loader.read_plan import ReadGroup
from headrace.schemas.grid import AxisGrid, ChunkGrid

STEPS = 10
PIECE_NBYTES = 4 * STEPS * 4
"""Four basins, a chunk of ten steps of float32, one variable."""


class Asked:
    """Stands in for a fetch, and says what was done with it."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self._log = name, log
        log.append(f"ask {name}")

    def drop(self) -> None:
        """Say so."""
        self._log.append(f"drop {self.name}")

    def give_up(self) -> None:
        """Say so."""
        self._log.append(f"give up {self.name}")


class Raw:
    """Begins to fetch; a piece is called by its group (first basin) and its first chunk."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def fetch(self, _opened: Any, _v: int, piece: ReadGroup) -> Asked:
        """Begin."""
        return Asked(f"{piece.basin_start // 4}.{piece.step_start // STEPS}", self.log)


def fetches(raw: Raw, *, num_readers: int = 2, piece_nbytes: int = PIECE_NBYTES, most_nbytes: int = 10**9) -> Any:
    return GroupFetches(raw, num_readers=num_readers, piece_nbytes=piece_nbytes, most_nbytes=most_nbytes)  # type: ignore[arg-type]


def group(number: int, num_pieces: int) -> GroupFetch:
    grid = ChunkGrid(basin=AxisGrid(extent=400, chunk_size=4), time=AxisGrid(extent=1000, chunk_size=STEPS))
    opened: Any = SimpleNamespace(arrays=[SimpleNamespace(grid=grid, dtype=np.dtype("f4"))])
    pieces = [
        ReadGroup(
            dataset=0, variables=(0,), basin_start=4 * number, basin_stop=4 * number + 4,
            step_start=STEPS * p, step_stop=STEPS * (p + 1), slots=np.arange(4),
        )
        for p in range(num_pieces)
    ]  # fmt: skip
    return GroupFetch(opened, lambda: pieces)


def test_pieces_are_asked_for_ahead_and_then_the_first_ones_of_as_many_groups_as_there_are_readers():
    raw = Raw()
    all_fetches = fetches(raw)
    expected = [all_fetches.expect(group(n, 4)) for n in range(5)]
    assert raw.log == []  # nothing is asked for before somebody reads
    with closing(all_fetches.pieces_of(expected[0])) as pieces:
        piece, found = next(pieces)
        assert (piece.step_start, found[0].name) == (0, "0.0")
        assert raw.log == ["ask 0.0", "ask 0.1", "ask 1.0", "ask 2.0"]
        all_fetches.drop(found)
        assert next(pieces)[1][0].name == "0.1"
        assert raw.log[4:] == ["drop 0.0", "ask 0.2"]
    assert raw.log[6:] == ["drop 0.2"]  # what nobody took; the other is its taker's to drop
    names = [found[0].name for _, found in all_fetches.pieces_of(expected[1])]
    assert names == ["1.0", "1.1", "1.2", "1.3"]
    assert raw.log.count("ask 1.0") == 1
    assert "ask 3.0" in raw.log
    assert "ask 4.0" not in raw.log


@pytest.mark.parametrize(("most_nbytes", "num_ahead"), [(0, 1), (2 * PIECE_NBYTES, 2), (10**9, 3)])
def test_memory_bounds_what_is_asked_for_of_other_groups_but_one_always_goes(most_nbytes: int, num_ahead: int):
    raw = Raw()
    all_fetches = fetches(raw, num_readers=3, most_nbytes=most_nbytes)
    first, *_ = [all_fetches.expect(group(n, 1)) for n in range(6)]
    assert len(list(all_fetches.pieces_of(first))) == 1
    assert raw.log == ["ask 0.0"] + [f"ask {n}.0" for n in range(1, 1 + num_ahead)]


def test_groups_without_pieces_are_passed_over():
    raw = Raw()
    all_fetches = fetches(raw, num_readers=2)
    first, empty, _ = [all_fetches.expect(group(n, n != 1)) for n in range(3)]
    assert len(list(all_fetches.pieces_of(first))) == 1
    assert raw.log == ["ask 0.0", "ask 2.0"]
    assert list(all_fetches.pieces_of(empty)) == []


def test_groups_that_will_not_be_filled_take_no_place_of_others():
    raw = Raw()
    all_fetches = fetches(raw)
    first, second, third, _, last = [all_fetches.expect(group(n, 1)) for n in range(5)]
    assert len(list(all_fetches.pieces_of(first))) == 1
    all_fetches.forget(second)
    assert raw.log == ["ask 0.0", "ask 1.0", "ask 2.0", "drop 1.0"]
    all_fetches.forget(last)
    assert len(list(all_fetches.pieces_of(third))) == 1
    assert raw.log[4:] == ["ask 3.0"]


def test_what_is_under_way_and_what_comes_later_is_given_up_together():
    raw = Raw()
    all_fetches = fetches(raw)
    first, second = (all_fetches.expect(group(n, 3)) for n in range(2))
    reading = all_fetches.pieces_of(first)
    next(reading)
    all_fetches.give_up()
    assert {line for line in raw.log if "give" in line} == {"give up 0.0", "give up 0.1", "give up 1.0"}
    list(all_fetches.pieces_of(second))
    assert "give up 1.2" in raw.log
