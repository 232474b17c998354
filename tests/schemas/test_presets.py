"""Presets: complete, and equal to the tables of published data sets where those are at hand."""

import csv
from collections import defaultdict
from datetime import date
from itertools import pairwise

import pytest

from headrace.schemas.presets import known_id, near_ids, preset_ids, preset_of, read_preset

# The tables have variables of these two, and no store name and record.
NOT_IN_STORES = {"camels_nz", "caravan"}


@pytest.fixture(scope="module")
def tables(data_root):
    """Rows of the three tables of published data sets."""
    folder = data_root.parent / "datasets"
    if not folder.is_dir():
        pytest.skip(f"needs the tables of published data sets: {folder} is not a folder")

    def rows(name):
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return {name: rows(name) for name in ("stores", "dynamic_variables", "static_variables")}


def source_name(text):
    """A source's name as meant: without blanks, and with the letters that a wrong decoding made Chinese."""
    text = text.strip()
    return text if text.isascii() else text.encode("gbk").decode("utf-8")


def test_every_data_set_of_the_tables_has_a_preset_and_no_other(tables):
    ids = {row["dataset_id"] for rows in tables.values() for row in rows}
    assert set(preset_ids()) == ids
    assert ids - {row["dataset_id"] for row in tables["stores"]} == NOT_IN_STORES


def test_stores_and_records_are_the_tables(tables):
    for row in tables["stores"]:
        preset = read_preset(row["dataset_id"])
        assert preset.timeseries == row["timeseries_store"]
        assert preset.attributes == row["timeseries_store"].replace("_timeseries", "_attributes")
        for ours, theirs in ((preset.first, row["first"]), (preset.last, row["last"])):
            assert ours.replace("-", "") == theirs.replace("-", "")


def test_series_are_the_tables(tables):
    expected = defaultdict(lambda: defaultdict(dict))
    defaults = {}
    for row in tables["dynamic_variables"]:
        key, source = (row["dataset_id"], row["standard_name"]), source_name(row["source"])
        expected[row["dataset_id"]][row["standard_name"]][source] = (row["physical"], row["unit"])
        if row["default"] == "True":
            assert key not in defaults
            defaults[key] = source
    assert len(expected) > 25
    for dataset_id in preset_ids():
        series = read_preset(dataset_id).series
        found = {n: {s: (a.physical, a.unit) for s, a in v.sources.items()} for n, v in series.items()}
        assert found == expected[dataset_id]
        assert {(dataset_id, n): v.default for n, v in series.items() if v.default is not None} == {
            key: source for key, source in defaults.items() if key[0] == dataset_id
        }


def test_statics_are_the_tables(tables):
    expected = defaultdict(dict)
    for row in tables["static_variables"]:
        expected[row["dataset_id"]][row["standard_name"]] = (row["physical"], row["unit"])
    for dataset_id in preset_ids():
        statics = read_preset(dataset_id).statics
        assert {n: (s.physical, s.unit) for n, s in statics.items()} == expected[dataset_id]


@pytest.mark.parametrize("dataset_id", preset_ids())
def test_preset_is_sound(dataset_id):
    preset = read_preset(dataset_id)
    assert preset.timeseries.endswith("_timeseries.zarr")
    assert preset.attributes.endswith("_attributes.zarr")
    assert {name for name, series in preset.series.items() if series.role == "target"} <= {"streamflow"}
    for series in preset.series.values():
        assert series.default is None or series.default in series.sources
    periods = preset.periods()
    days = [date.fromisoformat(day) for split in ("train", "valid", "test") for day in periods[split]]
    assert days[0] == date.fromisoformat(preset.first[:10])
    assert days[-1] == date.fromisoformat(preset.last[:10])
    assert [(after - before).days for before, after in pairwise(days)][1::2] == [1, 1]
    lengths = [(days[i + 1] - days[i]).days + 1 for i in (0, 2, 4)]
    assert [round(length / sum(lengths), 2) for length in lengths] == [0.6, 0.2, 0.2]


def test_ids_are_found_in_any_spelling_and_by_the_names_of_their_stores():
    assert known_id("CAMELS-US") == "camels_us"
    assert known_id("camelsus") == known_id("camels") == "camels"
    assert known_id("lamahce") == "lamah_ce"
    assert known_id("mine") is None
    assert preset_of("mine") is None
    assert near_ids("camelsus_us")[0] == "camels_us"


def test_text_attributes_are_marked():
    marked = {n for i in preset_ids() for n, s in read_preset(i).statics.items() if not s.numeric}
    assert marked == {"huc_02", "geol_1st_class", "geol_2nd_class", "dom_land_cover"}


def test_attributes_that_sum_up_the_flow_are_marked():
    statics = [(i, n, s) for i in preset_ids() for n, s in read_preset(i).statics.items()]
    assert {(i, n) for i, n, s in statics if s.from_flow} == {
        ("camels_col", "q_mean"), ("camels_lux", "Qspec_sum"), ("camels_pe", "q_mean")
    }  # fmt: skip
    assert {n for _, n, _ in statics if n.lower().startswith(("q_", "qspec", "runoff", "baseflow"))} == {
        "q_mean", "Qspec_sum"
    }  # fmt: skip
