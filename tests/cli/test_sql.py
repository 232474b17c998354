"""`sql` answers in every format, reads standard input, and hands on what DuckDB says of a wrong query."""

import io
import json

import pytest

from command_line import run_headrace
from headrace.schemas.tables import TABLES

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
    assert "3 of 7 rows" in run_headrace("sql", built / "index", query, "--limit", "3").out
    assert len(run_headrace("sql", built / "index", query, "--limit", "3", "--format", "csv").out.splitlines()) == 8


def test_a_wrong_query_shows_duckdbs_own_message(built):
    outcome = run_headrace("sql", built / "index", "select * from window_runs")
    assert outcome.code == 2
    assert "window_runs" in outcome.err
    assert "does not exist" in outcome.err


def test_a_statement_without_rows_prints_no_error(built):
    outcome = run_headrace("sql", built / "index", "create table scratch (a integer)")
    assert outcome.code == 0, outcome.err


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
