"""A table never outgrows the terminal: numbers stay whole, texts lose what says least, rows become records."""

import io
from datetime import datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from command_line import run_headrace
from headrace.commands.render import write_rows
from headrace.commands.row_options import RowTarget
from headrace.commands.table_layout import Column, header_lines, lay_out, shorten

WIDTH = 100


def shown(monkeypatch, table, limit=0):
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    write_rows(table.to_reader(), RowTarget(form="table", path=None, limit=limit))
    return out.getvalue()


@given(
    st.lists(st.tuples(st.text(max_size=30), st.booleans(), st.integers(0, 60)), min_size=1, max_size=30),
    st.integers(1, 40),
)
def test_columns_and_frame_fit_whatever_they_hold(columns, num_rows):
    laid = [
        Column(name=name, cells=("9" * size if numeric else "w" * size,) * num_rows, whole=numeric)
        for name, numeric, size in columns
    ]
    layout = lay_out(laid, WIDTH)
    if layout.records:
        return
    assert sum(layout.widths) + 3 * len(layout.widths) + 1 <= WIDTH
    for column, width in zip(laid, layout.widths, strict=False):
        assert width >= min(column.widest, 8)
        assert not column.whole or width >= column.widest


@given(st.text(), st.integers(0, 30))
def test_a_shortened_text_has_the_width_it_may_have(text, width):
    assert cell_len(shorten(text, width)) <= width


def test_ids_lose_their_middle_and_sentences_their_end():
    assert shorten("potential_evapotranspiration", 18) == "potential…piration"
    assert shorten("the record is too short", 10) == "the recor…"
    assert shorten("流域流域流域", 7) == "流…域"


def test_names_of_columns_are_broken_at_their_underscores():
    assert header_lines("stored_nbytes", 13) == ["stored_nbytes"]
    assert header_lines("stored_nbytes", 10) == ["stored_", "nbytes"]
    assert header_lines("basins_with_windows", 12) == ["basins_with_", "windows"]
    assert header_lines("potentialevapotranspiration_mm", 9) == ["pote…ion_", "mm"]


def test_many_columns_of_many_rows_are_named_below(monkeypatch):
    table = pa.table({f"column_{i}": ["value"] * 20 for i in range(20)})
    out = shown(monkeypatch, table)
    assert max(map(len, out.splitlines())) <= 400
    grid, _, notes = out.rpartition("┘")
    assert max(len(line) for line in grid.splitlines()) <= WIDTH
    named = notes.replace("\n", " ").partition("more columns: ")[2].replace(" ", "").split(",")
    assert named == [f"column_{i}" for i in range(20 - len(named), 20)]


def test_few_rows_of_many_columns_are_written_one_below_the_other(built):
    out = run_headrace("sql", built / "index", "from variables limit 2").out
    assert "row 2" in out
    assert "missing_rule" in out
    assert "…" not in out


def test_markup_and_control_signs_are_shown_and_not_obeyed(monkeypatch):
    out = shown(monkeypatch, pa.table({"[bold]a": ["[red]x[/red]", "\x1b[31mred\x07"]}))
    assert "[red]x[/red]" in out
    assert "[bold]a" in out
    assert "\\x1b[31mred\\x07" in out
    assert "\x1b[31mred" not in out


def test_times_are_not_cut_and_intervals_are_words(monkeypatch):
    night = datetime(2000, 1, 1, 23, 59)
    texts = {f"text_{i}": ["potential_evapotranspiration"] * 9 for i in range(5)}
    out = shown(monkeypatch, pa.table({"at": [night] * 9, **texts}))
    assert out.count("2000-01-01 23:59:00") == 9
    assert max(len(line) for line in out.splitlines()) <= WIDTH
    spans = pa.array([pa.MonthDayNano([1, 3, 500_000_000]), pa.MonthDayNano([0, 0, 0])], pa.month_day_nano_interval())
    assert "1 months 3 days 0.5 s" in shown(monkeypatch, pa.table({"span": spans}))


def test_plans_keep_their_lines(built):
    out = run_headrace("sql", built / "index", "explain select 1").out
    assert "explain_value\n" in out


def test_rows_beyond_the_limit_are_counted(monkeypatch):
    out = shown(monkeypatch, pa.table({"n": range(200_000)}), limit=3)
    assert "199,997 more of 200,000 rows" in out
    assert sum(line.startswith("│") for line in out.splitlines()) == 3
