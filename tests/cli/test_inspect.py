"""Every topic of `inspect` says what the stores were written with, in every format."""

import csv
import io
import json

import numpy as np
import pytest

from build_here import build_here
from command_line import run_headrace
from synthetic import write_store

TOPICS = ("summary", "coverage", "gaps", "dropped", "chunks", "stats", "windows")


def rows(index, *arguments):
    outcome = run_headrace("inspect", index, *arguments, "--format", "json")
    assert outcome.code == 0, outcome.err
    return [json.loads(line) for line in outcome.out.splitlines()]


@pytest.mark.parametrize("topic", TOPICS)
def test_formats_agree(built, topic):
    index = built / "index"
    as_json = rows(index, topic)
    assert as_json
    as_csv = list(csv.DictReader(io.StringIO(run_headrace("inspect", index, topic, "--format", "csv").out)))
    assert [list(row) for row in as_csv] == [list(row) for row in as_json]
    assert [[str(v) for v in row.values()] for row in as_json] == [list(row.values()) for row in as_csv]
    table = run_headrace("inspect", index, topic, "--limit", "0").out
    assert max(len(line.rstrip()) for line in table.splitlines()) <= 100
    assert sum(line.startswith("│") for line in table.splitlines()) >= len(as_json)


@pytest.mark.parametrize("topic", TOPICS)
def test_one_data_set_alone(built, topic):
    found = rows(built / "index", topic, "--dataset", "two")
    assert {row["dataset_id"] for row in found} <= {"two"}
    assert [row for row in rows(built / "index", topic) if row["dataset_id"] == "two"] == found


def test_summary_counts_windows_and_basins(built):
    found = {(row["dataset_id"], row["split"]): row for row in rows(built / "index")}
    # 80 days in each of 3 basins: 5 too early for a window of 6, and 5 days of one basin without streamflow.
    assert found["one", "train"] == {
        "dataset_id": "one", "split": "train", "first": "2000-01-01", "last": "2000-03-20", "basins": 3,
        "with_windows": 3, "windows": 3 * 75 - 5, "dropped": 3 * 5 + 5,
    }  # fmt: skip
    assert found["two", "test"]["windows"] == 20
    assert found["two", "test"]["dropped"] == 0


def test_gaps_are_those_written(built):
    found = [(r["variable"], r["basin_id"], r["missing_steps"], r["from_time"]) for r in rows(built / "index", "gaps")]
    assert found == [
        ("streamflow", "01002500", 5, "2000-02-10 00:00"),
        ("precipitation", "01001500", 2, "2000-01-21 00:00"),
    ]


def test_dropped_windows_name_their_reason(built):
    found = {(r["basin_id"], r["reason"]): r["windows"] for r in rows(built / "index", "dropped", "--dataset", "one")}
    early = {(basin, "record_too_short"): 5 for basin in ("01000500", "01001500", "01002500")}
    assert found == {**early, ("01002500", "target_missing"): 5}


def test_coverage_is_the_observed_share(built):
    found = {
        (r["variable"], r["year"]): r["observed_share"] for r in rows(built / "index", "coverage", "--dataset", "one")
    }
    assert found["temperature", 2000] == 1
    assert found["precipitation", 2000] == round(1 - 2 / 360, 4)
    assert found["streamflow", 2000] == round(1 - 5 / 360, 4)


def test_chunks_are_the_stored_objects(built):
    found = {r["variable"]: r for r in rows(built / "index", "chunks", "--dataset", "one")}
    assert {(r["stored_shape"], r["objects"], r["state"]) for r in found.values()} == {("2,50", 6, "data")}
    assert found["precipitation"]["observed"] == 3 * 120 - 2


def test_statistics_are_those_of_the_training_period(built):
    found = {(r["scope"], r["dataset_id"], r["variable"]): r for r in rows(built / "index", "stats")}
    values = 1 + np.arange(80)[None, :] + 2**12 * np.arange(3)[:, None] + 2**18
    row = found["dataset", "one", "temperature"]
    assert (row["count"], row["min"], row["max"]) == (240, values.min(), values.max())
    np.testing.assert_allclose([row["mean"], row["std"]], [values.mean(), values.std()])


def test_windows_are_runs_of_starts(built):
    found = [r for r in rows(built / "index", "windows", "--dataset", "one") if r["split"] == "train"]
    mine = [(r["start"], r["stop"], r["num_windows"]) for r in found if r["basin_id"] == "01002500"]
    # Targets are the last of 6 days; those of days 40 to 44 are gone.
    assert mine == [(0, 35, 35), (40, 75, 35)]


def test_a_record_that_starts_late_in_a_calendar_of_its_own(tmp_path):
    late = np.zeros((1, 100), dtype=bool)
    late[0, :40] = True
    store = write_store(
        tmp_path / "s.zarr", basins=1, steps=100, variables=("rain", "flow"), missing={"flow": late},
        calendar="360_day", time_start="2001-12-01", shards=(1, 100), chunks=(1, 50), zarr_format=3,
    )  # fmt: skip
    config = {
        "datasets": {
            "model": {
                "timeseries": str(store.path),
                "t_range_train": ["2001-12-01", "2002-03-10"],
                "variables": {"relevant": ["rain"], "target": ["flow"]},
            }
        },
        "window": {"hindcast_length": 2},
    }
    index = build_here(config, tmp_path / "index")
    gap = rows(index, "gaps")
    assert [(r["variable"], r["missing_steps"], r["from_time"]) for r in gap] == [("flow", 40, "2001-12-01 00:00")]
    found = {(r["variable"], r["year"]): r["observed_share"] for r in rows(index, "coverage")}
    assert found == {("rain", 2001): 1, ("rain", 2002): 1, ("flow", 2001): 0, ("flow", 2002): round(60 / 70, 4)}
    assert {r["stored_shape"] for r in rows(index, "chunks")} == {"1,100"}


def test_a_long_table_is_cut_and_says_so(built):
    out = run_headrace("inspect", built / "index", "windows", "--limit", "2").out
    assert "2 of " in out
    assert "--limit 0 shows all" in out


def test_what_is_not_there_is_said(built, tmp_path):
    assert run_headrace("inspect", built / "index", "--dataset", "three").code == 2
    assert run_headrace("inspect", built / "index", "weather").code == 2
    assert run_headrace("inspect", tmp_path / "none").code == 3
    (tmp_path / "empty").mkdir()
    assert run_headrace("inspect", tmp_path / "empty").code == 4
