"""Ticks are round and few, numbers are written as people read them, and lines and cells are where the values are."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.report import numbers
from headrace.report.curves import Series, cdf_plot
from headrace.report.dot_map import dot_map
from headrace.report.heat_map import Field, encode_cells, heat_map
from headrace.report.histogram import histogram
from headrace.report.plot import line_commands
from headrace.report.ticks import date_ticks, neat_range, neat_ticks

FINITE = st.floats(-1e12, 1e12, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-12)


@given(FINITE, FINITE, st.integers(3, 9))
def test_an_axis_holds_its_values_between_few_round_numbers(first, second, most):
    low, high = neat_range(np.array([first, second]), most)
    slack = 1e-6 * (high - low)
    assert low <= min(first, second) + slack
    assert high >= max(first, second) - slack
    ticks = neat_ticks(low, high, most)
    assert 2 <= len(ticks) <= most
    assert low - slack <= ticks[0] < ticks[-1] <= high + slack


def test_ticks_of_whole_numbers_are_whole():
    assert neat_ticks(1, 5, 8, whole=True) == [1, 2, 3, 4, 5]
    assert neat_ticks(1, 30, 8, whole=True) == [5, 10, 15, 20, 25, 30]
    assert neat_ticks(0, 1, 3, whole=True) == [0, 1]


@pytest.mark.parametrize(
    ("first", "last", "texts"),
    [
        ("2001-01-01", "2003-12-31", ["Jan 2001", "Jul 2001", "Jan 2002", "Jul 2002", "Jan 2003", "Jul 2003"]),
        ("1980-01-01", "2010-01-01", ["1980", "1985", "1990", "1995", "2000", "2005", "2010"]),
        ("2001-03-05", "2001-03-20", ["2001-03-05", "2001-03-20"]),
    ],
)
def test_dates_are_marked_by_year_month_or_ends(first, last, texts):
    dates = np.array([first, last], dtype="datetime64[s]")
    assert [text for _, text in date_ticks(dates)] == texts


def test_numbers_are_written_as_people_read_them():
    assert numbers.share(0.0) == "0 %"
    assert numbers.share(1e-9) == "< 0.1 %"
    assert numbers.share(0.99999) == "> 99.9 %"
    assert numbers.share(0.5) == "50 %"
    assert numbers.size(1_600_000_000) == "1.6 GB"
    assert numbers.value(-0.0123456) == "−0.01235"
    assert numbers.value(1234567.0) == "1,234,567"
    assert numbers.value(7045.4, 3) == "7,045"
    assert (numbers.value(5003.0), numbers.value(50_000.0, 6)) == ("5003", "50,000")
    assert numbers.value(1.5e-7) == "1.5e−7"
    assert numbers.value(float("nan")) == "–"
    assert numbers.seconds(0.0123) == "12.3 ms"
    assert numbers.seconds(3725) == "1 h 2 min"
    assert numbers.step_length(10_800) == "3 hours"
    assert numbers.plural(1, "basin") == "1 basin"


def walk(commands):
    """Points of a path of M, l and h commands, a list per piece."""
    pieces = []
    for x, y, rest in re.findall(r"M(-?\d+) (-?\d+)(?:l([-\d ]+)|h0)", commands):
        steps = np.array([int(n) for n in rest.split()]).reshape(-1, 2)
        pieces.append(np.vstack([[int(x), int(y)], np.array([int(x), int(y)]) + np.cumsum(steps, axis=0)]))
    return pieces


def test_a_line_goes_through_its_points_and_breaks_where_there_is_none():
    x = np.arange(7.0) * 10
    y = np.array([1.0, 5.0, np.nan, 7.0, np.nan, 2.0, 3.0])
    pieces = walk(line_commands(x, y))
    assert [piece.tolist() for piece in pieces] == [[[0, 1], [10, 5]], [[30, 7]], [[50, 2], [60, 3]]]
    assert line_commands(x, np.full(7, np.nan)) == ""


def test_a_distribution_rises_from_what_lies_below_the_axis_to_one():
    plot = cdf_plot("NSE", [Series("one", np.array([0.5, -3.0, np.nan, 0.0, 1.0]))], "NSE")
    commands = re.search(r'class="line s0" d="([^"]*)"', plot.marks).group(1)
    # The axis is from −1 to 1: a quarter at its left end, then 0, 0.5 and 1, each a quarter more.
    assert commands == "M0 750H1000V500H1500V250H2000V0H2000"
    assert "1 below −1" in plot.description


def test_every_value_is_in_a_bar():
    values = np.random.default_rng(0).gamma(2.0, 3.0, 500)
    plot = histogram("rain", values, "mm", "basins")
    assert sum(int(row[1].replace(",", "")) for row in plot.table.rows) == 500
    assert plot.marks.count("<path") == 2


def test_cells_of_one_colour_are_one_piece_and_none_is_left_out():
    shares = np.array([[0.0, 0.0, 1.0], [0.5, np.nan, 1.0]])
    field = Field(shares=shares, rows=["a", "b"], columns=["x", "y", "z"])
    plot = heat_map("map", field, description="", x_ticks=(), y_ticks=(), height=10)
    drawn = {
        kind: re.findall(r"M(\d+) (\d+)h(\d+)v1H\1z", commands)
        for kind, commands in re.findall(r'class="cell (\w+)" d="([^"]*)"', plot.marks)
    }
    assert drawn == {"l0": [("0", "0", "2")], "l10": [("2", "0", "1"), ("2", "1", "1")], "l5": [("0", "1", "1")]}
    assert encode_cells(np.array([[0.0, 1e-9, 1 - 1e-9, 1.0, np.nan]])) == "0001rrrs--"


def test_dots_lie_where_basins_do_and_have_their_class():
    plot = dot_map("map", np.array([50.0, 40.0]), np.array([-10.0, 10.0]), np.array([0.9, -1.0]))
    (good,) = re.findall(r'class="dot c4" d="M(\d+) (\d+)h0"', plot.marks)
    (bad,) = re.findall(r'class="dot c0" d="M(\d+) (\d+)h0"', plot.marks)
    assert int(good[0]) < int(bad[0])
    assert int(good[1]) < int(bad[1])
