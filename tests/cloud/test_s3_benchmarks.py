"""The benchmarks on object storage read what they say, and their ratios are of what they measured."""

import importlib
import json
import statistics
import sys
from dataclasses import replace

import pytest

from tree import REPOSITORY


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a benchmark on a small store and return its rows."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    s3_rate = importlib.import_module("s3_rate")
    small = replace(s3_rate.SMALL, name="small", basins=4, steps=800, variables=3, chunks=(2, 365))
    monkeypatch.setitem(s3_rate.STORES, "small", small)
    monkeypatch.setattr(s3_rate, "SWEEP", (1, 2))

    def run(program: str, *arguments: str) -> list[dict]:
        rows = tmp_path / "rows.jsonl"
        given = [program, "--store", "small", "--work-dir", str(tmp_path), "--json", str(rows), *arguments]
        monkeypatch.setattr(sys, "argv", given)
        importlib.import_module(program).main()
        return [json.loads(line) for line in rows.read_text().splitlines()]

    return run


@pytest.mark.slow
def test_rates_are_held_against_the_same_objects(run, capsys):
    (row,) = run("s3_rate", "--repeats", "2")
    assert row["objects"] == 3 * 2 * 3
    bare = statistics.median(row["seconds"]["bare obstore and decoding"])
    assert row["ratio_build"] == pytest.approx(bare / statistics.median(row["seconds"]["index build"]))
    assert row["ratio_first_epoch"] == pytest.approx(bare / statistics.median(row["seconds"]["first epoch"]))
    assert {len(values) for values in row["seconds"].values()} == {2}
    assert "of bare" in capsys.readouterr().out


@pytest.mark.slow
def test_waits_are_those_after_the_first_round(run):
    rows = run("s3_latency", "--batches", "20", "--batch-size", "8", "--step", "0.001", "--latency", "0.01")
    assert [row["memory_budget_share"] for row in rows] == [None, 0.25]
    for row in rows:
        assert row["chunks_read"] == 3 * 2 * 3
        assert 0 < row["batches_of_first_round"] < row["batches"]
        assert row["first_round_wait_seconds"] > 0.01
        assert row["wait_share_of_step"] >= 0
