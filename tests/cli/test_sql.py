"""`sql` answers in every format, reads standard input, and hands on what DuckDB says of a wrong query."""

import contextlib
import io
import json
import re

import click
import pyarrow.parquet as pq
import pytest

import headrace
from command_line import run_headrace
from headrace.commands.render import write_rows
from headrace.commands.row_options import row_target
from headrace.schemas.tables import TABLES
from headrace.schemas.views import VIEWS

NOWHERE = {"form": None, "output": None, "csv": None, "json": None, "parquet": None, "limit": 0}

SUM = "select split, sum(num_windows) as n from windows where dataset_id = 'two' group by split order by split"


def test_every_table_is_a_view_of_its_own_name(built):
    for name in TABLES:
        outcome = run_headrace("sql", built / "index", f"select count(*) as n from {name}", "--format", "json")
        assert outcome.code == 0, outcome.err
        assert json.loads(outcome.out)["n"] >= 0


def test_sums_are_numbers_in_every_format(built):
    index = built / "index"
    as_json = [json.loads(line) for line in run_headrace("sql", index, SUM, "--format", "json").out.splitlines()]
    assert as_json == [{"split": "test", "n": 20}, {"split": "train", "n": 90}]
    assert run_headrace("sql", index, SUM, "--format", "csv").out == "split,n\ntest,20\ntrain,90\n"
    table = run_headrace("sql", index, SUM).out
    assert "│ train │ 90 │" in table


def test_what_json_has_no_number_for_is_null(built):
    query = "select 'NaN'::DOUBLE as a, 'Infinity'::DOUBLE as b, null as c, 0.5 as d, date '2000-02-29' as e"
    outcome = run_headrace("sql", built / "index", query, "--format", "json")
    assert json.loads(outcome.out) == {"a": None, "b": None, "c": None, "d": 0.5, "e": "2000-02-29"}


def test_a_query_can_come_from_standard_input(built, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(SUM))
    assert run_headrace("sql", built / "index", "-", "--format", "csv").out.splitlines()[0] == "split,n"


def test_tables_are_cut_and_other_formats_are_not(built):
    query = "select * from range(7) as t(number)"
    assert "4 more of 7 rows" in run_headrace("sql", built / "index", query, "--limit", "3").out
    assert len(run_headrace("sql", built / "index", query, "--limit", "3", "--format", "csv").out.splitlines()) == 8


def test_a_table_ends_with_its_rows_and_the_time_they_took(built):
    *_, last = run_headrace("sql", built / "index", "select 1 as a").out.splitlines()
    assert re.fullmatch(r"1 row in [\d.,]+ m?s", last)


def test_views_answer_what_is_often_asked(built):
    for name in VIEWS:
        outcome = run_headrace("sql", built / "index", f"from {name}", "--format", "json")
        assert outcome.code == 0, outcome.err
        assert outcome.out or name == "time_gaps"
    query = "from gaps select basin_id, num_steps where variable = 'streamflow'"
    assert json.loads(run_headrace("sql", built / "index", query, "--format", "json").out) == {
        "basin_id": "01002500", "num_steps": 5,
    }  # fmt: skip


def test_a_query_can_come_from_a_file(built, tmp_path):
    (tmp_path / "q.sql").write_text(SUM)
    assert run_headrace("sql", built / "index", "-f", tmp_path / "q.sql", "--format", "csv").out.startswith("split,n\n")
    lost = run_headrace("sql", built / "index", "-f", tmp_path / "none.sql")
    assert (lost.code, "none.sql" in lost.err) == (2, True)
    both = run_headrace("sql", built / "index", SUM, "-f", tmp_path / "q.sql")
    assert (both.code, "leave one out" in both.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--csv",), "a.csv"), (("--json",), "a.json"), (("--parquet",), "a.parquet"), (("--output",), "b.csv"),
        (("--output",), "b.jsonl"), (("--output",), "b.parquet"), (("--output",), "b.md"), (("--output",), "b.txt"),
        (("--format", "csv", "--output"), "c"),
    ],
)  # fmt: skip
def test_rows_are_kept_in_a_file(built, tmp_path, arguments, name):
    outcome = run_headrace("sql", built / "index", SUM, *arguments, tmp_path / name)
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    assert outcome.err == f"2 rows written to {tmp_path / name}\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if name.endswith("parquet"):
        assert pq.read_table(tmp_path / name).to_pylist() == [{"split": "test", "n": 20}, {"split": "train", "n": 90}]
        return
    text = (tmp_path / name).read_text(encoding="utf-8")
    expected = {
        "a.csv": "split,n\ntest,20\ntrain,90\n",
        "a.json": '{"split": "test", "n": 20}\n{"split": "train", "n": 90}\n',
        "b.md": "| split | n |\n| --- | ---: |\n| test | 20 |\n| train | 90 |\n",
    }
    same = {"b.csv": "a.csv", "c": "a.csv", "b.jsonl": "a.json"}
    if name == "b.txt":
        assert "│ train │ 90 │" in text
    else:
        assert text == expected[same.get(name, name)]


def test_markdown_cells_stay_in_their_cells(built):
    out = run_headrace("sql", built / "index", "select 'a|b' || chr(10) || 'c' as x", "--format", "markdown").out
    assert out.splitlines()[-1] == "| a\\|b c |"


def test_parquet_goes_into_a_pipe_and_not_to_a_terminal(built, monkeypatch):
    class Pipe(io.TextIOWrapper):
        terminal = False

        def isatty(self):
            return self.terminal

    pipe = Pipe(io.BytesIO())
    with contextlib.redirect_stdout(pipe):
        target = row_target(str(built / "index"), **{**NOWHERE, "form": "parquet"})
        with headrace.open_index(built / "index") as index:
            write_rows(index.sql_reader(SUM), target)
    assert pq.read_table(io.BytesIO(pipe.buffer.getvalue())).num_rows == 2
    monkeypatch.setattr(Pipe, "terminal", True)
    with contextlib.redirect_stdout(pipe), pytest.raises(click.UsageError, match="no text for a terminal"):
        row_target(str(built / "index"), **{**NOWHERE, "form": "parquet"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--csv", "a.csv", "--json", "a.json"), "--csv and --json all say"),
        (("--csv", "a.csv", "--format", "json"), "--csv and --format all say"),
        (("--output", "rows.dat"), "give --format"),
        (("--output", "none/rows.csv"), "the result cannot be written"),
        (("--csv", "index/windows.parquet"), "lies in the index"),
        (("--format", "xml"), "xml"),
    ],
)
def test_places_that_rows_cannot_go_to_are_refused(built, monkeypatch, arguments, words):
    monkeypatch.chdir(built)
    before = (built / "index" / "windows.parquet").read_bytes()
    outcome = run_headrace("sql", "index", SUM, *arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert (built / "index" / "windows.parquet").read_bytes() == before


def test_a_type_that_parquet_lacks_is_named(built, tmp_path):
    outcome = run_headrace(
        "sql", built / "index", "select interval 3 days as span", "--parquet", tmp_path / "a.parquet"
    )
    assert outcome.code == 2
    assert "span month_day_nano_interval" in outcome.err
    assert list(tmp_path.iterdir()) == []
    assert run_headrace("sql", built / "index", "select interval 3 days as i", "--format", "csv").out == "i\n3 days\n"


def test_a_query_that_fails_while_rows_come_leaves_no_file(built, tmp_path):
    query = "select (case when range < 150000 then '1' else 'x' end)::int as a from range(200000)"
    outcome = run_headrace("sql", built / "index", query, "--csv", tmp_path / "a.csv")
    assert outcome.code == 2
    assert "Could not convert string 'x'" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_query_shows_duckdbs_own_message(built):
    outcome = run_headrace("sql", built / "index", "select * from window_runs")
    assert outcome.code == 2
    assert "window_runs" in outcome.err
    assert "does not exist" in outcome.err


def test_a_statement_without_rows_prints_no_error_and_leaves_the_index_as_it_is(built):
    for statement in ("create table scratch (a integer)", "drop view windows"):
        outcome = run_headrace("sql", built / "index", statement)
        assert outcome.code == 0, outcome.err
    assert run_headrace("sql", built / "index", SUM, "--format", "csv").out == "split,n\ntest,20\ntrain,90\n"


@pytest.mark.parametrize("query", ["", "  -- nothing"])
def test_an_empty_query_is_refused(built, query, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(query))
    outcome = run_headrace("sql", built / "index", "-")
    assert outcome.code == 2
    assert "empty query" in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize(
    "query",
    [
        "copy windows to '{out}'",
        "copy windows to '{index}/windows.parquet'",
        "explain analyze copy windows to '{index}/windows.parquet'",
        "attach '{out}'",
        "export database '{out}'",
        "select * from read_text('{index}/manifest.json')",
        "set enable_external_access = true",
        "install httpfs",
    ],
)
def test_a_query_reaches_no_file_but_the_tables(built, tmp_path, query):
    index, out = built / "index", tmp_path / "out"
    before = (index / "windows.parquet").read_bytes()
    outcome = run_headrace("sql", index, query.format(index=index, out=out))
    assert outcome.code == 2, outcome.out
    assert not out.exists()
    assert (index / "windows.parquet").read_bytes() == before
    assert run_headrace("sql", index, "select count(*) from windows").code == 0
