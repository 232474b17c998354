"""Layout and tiles: every window in one tile, its rows consecutive in the tile, sizes within the budget."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.loader.layout import lay_out
from headrace.loader.tiles import Tiles, cut_tiles, tile_starts
from headrace.loader.windows import Windows
from random_windows import listed, window_runs, windows_from

lengths = st.integers(1, 12)


def windows_in(tiles: Tiles, number: int) -> list[int]:
    """Return the starts that a tile serves."""
    pieces = range(tiles.piece_cuts[number], tiles.piece_cuts[number + 1])
    return [int(tiles.piece_start[p]) + k * tiles.stride for p in pieces for k in range(tiles.piece_windows[p])]


@given(window_runs(), lengths)
def test_slots_hold_exactly_the_steps_that_the_windows_of_a_basin_need(windows: Windows, length: int):
    layout = lay_out(windows, length)
    starts: dict[tuple[int, int], list[int]] = {}
    for dataset, basin, start in listed(windows):
        starts.setdefault((dataset, basin), []).append(start)
    assert list(zip(layout.dataset.tolist(), layout.basin.tolist(), strict=True)) == sorted(starts)
    for slot, (_, own) in enumerate(sorted(starts.items())):
        assert (layout.first[slot], layout.last[slot]) == (min(own), max(own) + length)
        assert layout.base[slot + 1] - layout.base[slot] == max(own) + length - min(own)
    assert layout.num_rows == layout.base[-1]
    slots = [(layout.dataset[s], layout.basin[s]) for s in layout.run_slot]
    assert slots == list(zip(windows.dataset, windows.basin, strict=True))


@given(window_runs(), lengths, st.integers(1, 60))
def test_every_window_lies_in_one_tile(windows: Windows, length: int, starts_per_tile: int):
    layout = lay_out(windows, length)
    tiles = cut_tiles(windows, layout, length, starts_per_tile)
    served = [
        (int(layout.dataset[slot]), int(layout.basin[slot]), start)
        for number, slot in enumerate(tiles.slot)
        for start in windows_in(tiles, number)
    ]
    assert served == listed(windows)  # natural order as well


@given(window_runs(), lengths, st.integers(1, 60))
def test_the_steps_of_a_tile_are_those_its_windows_need(windows: Windows, length: int, starts_per_tile: int):
    layout = lay_out(windows, length)
    tiles = cut_tiles(windows, layout, length, starts_per_tile)
    for number, slot in enumerate(tiles.slot):
        starts = windows_in(tiles, number)
        assert len(starts) == tiles.num_windows[number] > 0
        assert (tiles.step_start[number], tiles.step_stop[number]) == (min(starts), max(starts) + length)
        assert layout.first[slot] <= tiles.step_start[number] < tiles.step_stop[number] <= layout.last[slot]
        assert tiles.num_rows[number] <= starts_per_tile + length - 1
    assert tiles.num_parts.tolist() == np.bincount(tiles.slot)[tiles.slot].tolist()
    for slot in range(layout.num_slots):
        own = tiles.part[tiles.slot == slot]
        assert own.tolist() == list(range(own.size))


@given(window_runs(), lengths, st.integers(0, 400))
def test_a_tile_fits_into_every_round_that_can_hold_a_window(windows: Windows, length: int, extra: int):
    layout = lay_out(windows, length)
    round_steps = length + extra
    tiles = cut_tiles(windows, layout, length, tile_starts(layout, length, round_steps))
    assert tiles.num_rows.max() <= max(round_steps, length)


def test_a_split_of_one_window_is_one_tile():
    windows = windows_from([(0, 3, 7, 1)], 1)
    layout = lay_out(windows, 5)
    tiles = cut_tiles(windows, layout, 5, tile_starts(layout, 5, 5))
    assert (tiles.slot.tolist(), tiles.num_rows.tolist(), tiles.num_windows.tolist()) == ([0], [5], [1])


def test_a_split_that_fits_has_a_part_of_every_basin_for_each_of_eight_rounds():
    windows = windows_from([(0, b, 0, 100) for b in range(4)], 1)
    layout = lay_out(windows, 10)
    tiles = cut_tiles(windows, layout, 10, tile_starts(layout, 10, layout.num_rows))
    assert tiles.num_parts.tolist() == [8] * 32
