"""Every topic of `inspect` says what the stores were written with, in every format."""

import csv
import io
import json
import re

import numpy as np
import pytest

from build_here import build_here
from command_line import run_headrace
from synthetic import write_store

TOPICS = ("summary", "coverage", "gaps", "dropped", "chunks", "stats", "windows")


def gaps_of(index, *arguments):
    names = ("variable", "basin_id", "missing_steps", "from_time", "to_time")
    return [tuple(row[name] for name in names) for row in rows(index, "gaps", *arguments)]


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
    assert gaps_of(built / "index") == [
        ("streamflow", "01002500", 5, "2000-02-10", "2000-02-14"),
        ("precipitation", "01001500", 2, "2000-01-21", "2000-01-22"),
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
    mine = [tuple(r.values())[3:] for r in found if r["basin_id"] == "01002500"]
    # Targets are the last of 6 days; those of days 40 to 44 are gone.
    assert mine == [(0, 35, 35, "2000-01-01", "2000-02-04"), (40, 75, 35, "2000-02-10", "2000-03-15")]


def test_a_record_that_starts_late_in_a_calendar_of_its_own(tmp_path):
    late = np.zeros((1, 100), dtype=bool)
    late[0, :40] = True
    store = write_store(
        tmp_path / "s.zarr", basins=["Rhine, Basel"], id_dtype="str", steps=100, variables=("rain", "flow"),
        missing={"flow": late}, calendar="360_day", time_start="2001-12-01", shards=(1, 100), chunks=(1, 50),
        zarr_format=3,
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
    gap = rows(index, "gaps", "--basin", '"Rhine, Basel"')
    assert [(r["variable"], r["missing_steps"], r["from_time"]) for r in gap] == [("flow", 40, "2001-12-01")]
    found = {(r["variable"], r["year"]): r["observed_share"] for r in rows(index, "coverage")}
    assert found == {("rain", 2001): 1, ("rain", 2002): 1, ("flow", 2001): 0, ("flow", 2002): round(60 / 70, 4)}
    assert {r["stored_shape"] for r in rows(index, "chunks")} == {"1,100"}


def test_a_long_table_is_cut_and_says_so(built):
    out = run_headrace("inspect", built / "index", "windows", "--limit", "2").out
    assert re.search(r"\d+ more of \d+ rows", out)
    assert "--limit 0 shows all" in out


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("--from", "2000-02", "--to", "2000-02-12"), [("streamflow", "01002500", 3, "2000-02-10", "2000-02-12")]),
        (("--to", "2000-01"), [("precipitation", "01001500", 2, "2000-01-21", "2000-01-22")]),
        (
            ("--from", "2000-01-22", "--to", "2000-01-22"),
            [("precipitation", "01001500", 1, "2000-01-22", "2000-01-22")],
        ),
        (("--variable", "streamflow"), [("streamflow", "01002500", 5, "2000-02-10", "2000-02-14")]),
        (("--basin", "01001500,01000500"), [("precipitation", "01001500", 2, "2000-01-21", "2000-01-22")]),
        (("--dataset", "two"), []),
    ],
)
def test_gaps_are_cut_to_what_is_asked_for(built, arguments, left):
    assert gaps_of(built / "index", *arguments) == left


def test_coverage_of_a_part_of_the_record_and_of_single_basins(built):
    asked = (
        "coverage",
        "--from",
        "2000-01-21",
        "--to",
        "2000-01-30",
        "--variable",
        "precipitation",
        "--dataset",
        "one",
    )
    assert [r["observed_share"] for r in rows(built / "index", *asked)] == [round(1 - 2 / 30, 4)]
    found = rows(built / "index", *asked, "--basin", "01001500,01002500")
    assert [(r["basin_id"], r["observed_share"]) for r in found] == [("01001500", 0.8), ("01002500", 1)]


def test_chunks_that_hold_a_basin_and_a_period(built):
    def objects(*arguments):
        [row] = rows(built / "index", "chunks", "--dataset", "one", "--variable", "streamflow", *arguments)
        return row["objects"]

    # Chunks hold 2 basins and 50 days: 2 times 3 of them.
    assert objects() == 6
    assert objects("--basin", "01002500") == 3
    assert objects("--basin", "01002500", "--from", "2000-02-19", "--to", "2000-02-20") == 2
    assert objects("--to", "2000-02-19") == 2


def test_windows_and_dropped_of_a_split_and_basin(built):
    found = rows(built / "index", "windows", "--split", "train", "--basin", "01002500", "--from", "2000-02-05")
    assert [(r["split"], r["basin_id"], r["start"]) for r in found] == [("train", "01002500", 40)]
    assert rows(built / "index", "dropped", "--split", "test") == []
    assert {r["split"] for r in rows(built / "index", "--split", "valid,test")} == {"valid", "test"}


def test_statistics_of_single_basins(built):
    found = rows(built / "index", "stats", "--basin", "01001500", "--variable", "temperature")
    values = 1 + np.arange(80) + 2**12 + 2**18
    assert [(r["basin_id"], r["count"], r["min"], r["max"]) for r in found] == [("01001500", 80, values[0], values[-1])]
    np.testing.assert_allclose([found[0]["mean"], found[0]["std"]], [values.mean(), values.std()])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gaps", "--basin", "1001500"), ["no such basin", "did you mean 01001500?", "01000500, 01001500"]),
        (("gaps", "--basin", "0100250O"), ["no such basin", "did you mean 01002500?"]),
        (("gaps", "--basin", "21", "--dataset", "one"), ["no such basin", "--basin"]),
        (("gaps", "--variable", "precipitaton"), ["no such variable", "did you mean precipitation?"]),
        (("windows", "--split", "training"), ["no such split", "did you mean train?"]),
        (("gaps", "--dataset", "onne"), ["no such data set", "did you mean one?"]),
        (("gaps", "--from", "1890", "--to", "1899"), ["no data set has a step", "one: 2000-01-01"]),
        (("gaps", "--from", "2000-03", "--to", "2000-02"), ["ends before it starts"]),
        (("gaps", "--from", "March"), ["date cannot be read", "--from"]),
        (("gaps", "--basin", ""), ["--basin is empty"]),
        (("coverage", "--split", "train"), ["--split does not apply to coverage", "--variable"]),
    ],
)
def test_what_an_index_has_not_is_named_with_what_it_has(built, arguments, words):
    outcome = run_headrace("inspect", built / "index", *arguments)
    assert outcome.code == 2
    assert all(word in outcome.err for word in words), outcome.err


def test_hours_are_shown_where_steps_are_hours(tmp_path):
    dry = np.zeros((1, 30), dtype=bool)
    dry[0, 5:7] = True
    store = write_store(
        tmp_path / "h.zarr", basins=1, steps=30, variables=("rain", "flow"), missing={"rain": dry}, step_seconds=3600
    )
    names = {"relevant": ["rain"], "target": ["flow"]}
    section = {"timeseries": str(store.path), "t_range_train": ["2000-01-01", "2000-01-02"], "variables": names}
    index = build_here({"datasets": {"hours": section}, "window": {"hindcast_length": 2}}, tmp_path / "index")
    assert gaps_of(index) == [("rain", "01000500", 2, "2000-01-01 05:00", "2000-01-01 06:00")]
    assert gaps_of(index, "--from", "2000-01-01 06:00") == [
        ("rain", "01000500", 1, "2000-01-01 06:00", "2000-01-01 06:00")
    ]


def test_chunks_of_a_mended_time_axis_are_those_that_hold_the_days(tmp_path):
    days = [*range(10, 20), *range(10)]
    store = write_store(
        tmp_path / "s.zarr", basins=1, steps=20, variables=("rain", "flow"), time_values=days, chunks=(1, 10)
    )
    section = {
        "timeseries": str(store.path), "t_range_train": ["2000-01-01", "2000-01-20"], "fix_time": "sort",
        "variables": {"relevant": ["rain"], "target": ["flow"]},
    }  # fmt: skip
    index = build_here({"datasets": {"a": section}, "window": {"hindcast_length": 2}}, tmp_path / "index")
    assert [r["objects"] for r in rows(index, "chunks", "--variable", "rain", "--to", "2000-01-10")] == [1]
    assert [r["objects"] for r in rows(index, "chunks", "--variable", "rain", "--to", "2000-01-11")] == [2]


def test_what_is_not_there_is_said(built, tmp_path):
    assert run_headrace("inspect", built / "index", "--dataset", "three").code == 2
    assert run_headrace("inspect", built / "index", "weather").code == 2
    assert run_headrace("inspect", tmp_path / "none").code == 3
    (tmp_path / "empty").mkdir()
    assert run_headrace("inspect", tmp_path / "empty").code == 4
