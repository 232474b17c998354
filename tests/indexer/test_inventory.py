"""Everything wrong with a configuration is said at once, with what the store has instead."""

import numpy as np
import pytest
import zarr

from headrace.schemas.errors import ConfigError, SourceError
from headrace.schemas.variables import rule_from_json
from indexing import build_inline, config, dataset, date_of, rows
from synthetic import write_attributes, write_store


def refused(settings, tmp_path, monkeypatch, kind):
    with pytest.raises(kind) as caught:
        build_inline(settings, tmp_path / "i", monkeypatch)
    assert not (tmp_path / "i").exists()
    return str(caught.value)


def test_all_problems_of_all_data_sets_come_in_one_error(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=20)
    broken = write_store(tmp_path / "b.zarr", steps=3, time_values=[0, 2, 1])
    names = {"relevant": {"precipitation": "precipitatoin"}, "target": {"streamflow": "streamflow"}}
    settings = config(
        {
            "one": dataset(store, variables=names, basins=["nobody"], t_range_test=["1900-01-01", "1900-12-31"]),
            "two": dataset(broken),
            "three": {**dataset(store), "timeseries": str(tmp_path / "none.zarr")},
        }
    )
    message = refused(settings, tmp_path, monkeypatch, ConfigError)
    assert message.startswith("5 problems stand in the way of this index\n1. ")
    assert "1 of 1 basins are not in the store" in message
    assert "store has no array 'precipitatoin'" in message
    assert "time coordinate is not sorted" in message
    assert "store not found" in message
    assert f"datasets.three.timeseries: {tmp_path / 'none.zarr'}" in message
    assert "b.zarr, s.zarr" in message
    assert "datasets.one.t_range_test" in message


@pytest.mark.parametrize("array", ["streamflow", "basin", "time"])
def test_metadata_that_cannot_be_read_are_an_error_of_the_store(tmp_path, monkeypatch, array):
    store = write_store(tmp_path / "s.zarr", steps=20)
    document = next(p for p in (store.path / array).iterdir() if p.name in (".zarray", "zarr.json"))
    document.write_text("{")
    message = refused(config({"a": dataset(store)}), tmp_path, monkeypatch, SourceError)
    assert f"array cannot be opened\n  where:    {store.path}, array {array}\n" in message


def test_period_and_array_problems_of_one_data_set_come_together(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=20)
    section = dataset(store, variables={"target": {"flow": "flow"}}, t_range_test=["1900-01-01", "1900-12-31"])
    message = refused(config({"a": section}), tmp_path, monkeypatch, ConfigError)
    assert "2 problems" in message


@pytest.mark.parametrize(
    ("dates", "problem"),
    [
        (["2000-02-30", "2000-03-01"], "t_range_test = '2000-02-30'"),
        (["2000-01-01", "2000"], "t_range_test = '2000'"),
        (["2000-01-05", "2000-01-01"], "t_range_test = [2000-01-05, 2000-01-01]"),
    ],
)
def test_dates_that_cannot_be_are_named_by_their_dotted_key(tmp_path, monkeypatch, dates, problem):
    section = dataset(write_store(tmp_path / "s.zarr", steps=20), t_range_test=dates)
    assert f"datasets.a.{problem}" in refused(config({"a": section}), tmp_path, monkeypatch, ConfigError)


def test_repeated_ids_and_splits_without_basins_or_period_are_remarked(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=20, basins=["1", "2", "3"])
    period = [date_of(store, 0), date_of(store, 19)]
    basins = {"train": ["1", "1", "1", "2", "2"], "test": "all"}
    section = dataset(store, basins=basins, t_range_valid=period, t_range_test=None)
    report, _ = build_inline(
        config({"a": section, "b": dataset(store, basins=["3", "3"])}), tmp_path / "i", monkeypatch
    )
    said = "\n".join(report.warnings)
    assert "datasets.a.basins.train: 2 basins are named more than once and taken once (1, 2); 5 entries, 2" in said
    assert "datasets.a.basins names none for valid, so t_range_valid has no windows" in said
    assert "datasets.a.basins.test: 3 basins, but there is no t_range_test, so it has no windows" in said
    assert "datasets.b.basins: 1 basin is named more than once and taken once (3); 2 entries, 1 basins" in said


def test_problems_of_the_stores_alone_are_source_errors(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=3, time_values=[0, 2, 1], basins=["1", "2"], id_dtype="float64")
    message = refused(config({"a": dataset(store)}), tmp_path, monkeypatch, SourceError)
    assert "2 problems" in message


def test_missing_array_is_answered_with_near_names_and_what_there_is(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr")
    section = dataset(store, variables={"target": {"streamflow": "stream_flow"}})
    message = refused(config({"a": section}), tmp_path, monkeypatch, ConfigError)
    assert "datasets.a.variables.target.streamflow" in message
    assert "precipitation, streamflow" in message
    assert "did you mean streamflow?" in message
    assert "required: false" in message


def test_optional_array_that_is_not_there_is_recorded_as_absent(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr")
    wanted = {"physical": "swe", "required": False, "fill_value": -1.5, "unit": "mm"}
    variables = {"relevant": {"precipitation": "precipitation", "swe": wanted}, "target": {"streamflow": "streamflow"}}
    build_inline(config({"a": dataset(store, variables=variables)}), tmp_path / "i", monkeypatch)
    (row,) = rows(tmp_path / "i", "variables", variable="swe")
    assert (row["present"], row["position"], row["model_fill_value"], row["unit"]) == (False, 1, -1.5, "mm")
    assert {row[n] for n in ("array", "dtype", "dims", "chunk_shape", "decode_rule", "missing_rule")} == {""}
    assert rows(tmp_path / "i", "runs", variable="swe") == []


def test_variable_that_only_another_data_set_declares_is_refused(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr")
    less = dataset(store, variables={"target": {"streamflow": "streamflow"}})
    message = refused(config({"a": dataset(store), "b": less}), tmp_path, monkeypatch, ConfigError)
    assert "datasets.b.variables.relevant.precipitation" in message
    assert "required: false" in message


def test_array_and_coordinate_of_different_length_are_refused(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=20)
    zarr.open_group(str(store.path), mode="r+")["streamflow"].resize((3, 25))
    message = refused(config({"a": dataset(store)}), tmp_path, monkeypatch, SourceError)
    assert "array streamflow, dimension time" in message
    assert "expected: 20" in message
    assert "got:      25" in message


@pytest.mark.parametrize("kind", ["text", "bool", "datetime64[s]", "complex64"])
def test_values_that_are_no_numbers_are_refused_by_name(tmp_path, monkeypatch, kind):
    store = write_store(tmp_path / "s.zarr")
    group = zarr.open_group(str(store.path), mode="r+")
    dtype = "str" if kind == "text" else kind
    group.create_array("odd", shape=(3, 20), dtype=dtype, attributes={"_ARRAY_DIMENSIONS": ["basin", "time"]})
    section = dataset(store, variables={"target": {"odd": "odd"}})
    message = refused(config({"a": section}), tmp_path, monkeypatch, SourceError)
    assert "array is not numeric" in message
    assert "array odd" in message


def test_text_attribute_is_refused_by_name_with_a_hint(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr")
    attributes = write_attributes(tmp_path / "a.zarr", store.basin_ids, {"geology": np.array(["x", "y", "z"], object)})
    variables = {"target": {"streamflow": "streamflow"}, "constant": {"geology": "geology"}}
    section = dataset(store, attributes=str(attributes), variables=variables)
    message = refused(config({"a": section}), tmp_path, monkeypatch, SourceError)
    assert "array geology" in message
    assert "coded as numbers" in message


def test_dimensions_are_found_by_name_in_any_order_with_extras_of_length_one(tmp_path, monkeypatch):
    """C1, C3: a grid and an order of dimensions for each variable."""
    dims = {
        "a": ("basin", "time"),
        "b": ("time", "basin"),
        "c": ("level", "time", "basin"),
        "d": ("basin", "level", "time"),
    }
    chunks = {"a": (2, 8), "b": (4, 3), "c": (1, 20, 1), "d": (1, 1, 7)}
    store = write_store(tmp_path / "s.zarr", variables=list("abcd"), dims=dims, chunks=chunks)
    build_inline(config({"x": dataset(store)}), tmp_path / "i", monkeypatch)
    for name in "abcd":
        truth = store.truth[name].astype("f8")
        (found,) = rows(tmp_path / "i", "stats", scope="global", variable=name)
        assert (found["count"], found["min"], found["max"]) == (60, truth.min(), truth.max())
    shapes = {r["variable"]: (r["dims"], r["chunk_shape"], r["shard_shape"]) for r in rows(tmp_path / "i", "variables")}
    assert shapes["c"] == ("level,time,basin", "1,20,1", "")
    grids = {n: len(rows(tmp_path / "i", "chunks", variable=n)) for n in "abcd"}
    assert grids == {"a": 2 * 3, "b": 5, "c": 3, "d": 3 * 3}


def test_flow_becomes_depth_by_the_area_of_each_basin(tmp_path, monkeypatch):
    """A10: unit factor and area meet in float64; the loader finds the same area in the table statics."""
    ids = ["a", "b", "c"]
    store = write_store(tmp_path / "s.zarr", basins=ids, attrs={"streamflow": {"units": "m3/s"}})
    columns = {"area": [1.0, 3.0, 2.0, 9.0]}
    attributes = write_attributes(tmp_path / "a.zarr", ["a", "c", "b", "z"], columns, {"area": "km2"})
    depth = {"physical": "streamflow", "per_area": "area", "unit": "mm/day"}
    section = dataset(store, basins=["b", "c"], attributes=str(attributes), variables={"target": {"streamflow": depth}})
    build_inline(config({"x": section}), tmp_path / "i", monkeypatch)
    assert [(r["basin"], r["value"]) for r in rows(tmp_path / "i", "statics", variable="@area:area")] == [
        (0, 2.0),
        (1, 3.0),
    ]
    (row,) = rows(tmp_path / "i", "variables")
    rule = rule_from_json(row["decode_rule"])
    assert (rule.area_array, row["unit"]) == ("area", "mm/day")
    np.testing.assert_allclose(rule.area_factor, 86.4)
    found = rows(tmp_path / "i", "stats", scope="basin")
    raw = store.truth["streamflow"].astype("f8").mean(axis=1)
    np.testing.assert_allclose([r["mean"] for r in found], [raw[1] * 86.4 / 2.0, raw[2] * 86.4 / 3.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("units", "expected"),
    [({"area": "acre"}, "per_area does not know the area unit"), ({}, "per_area does not know the area unit")],
)
def test_unknown_units_of_per_area_are_refused(tmp_path, monkeypatch, units, expected):
    store = write_store(tmp_path / "s.zarr", attrs={"streamflow": {"units": "m3/s"}})
    attributes = write_attributes(tmp_path / "a.zarr", store.basin_ids, {"area": [1.0, 2.0, 3.0]}, units)
    depth = {"physical": "streamflow", "per_area": "area", "unit": "mm/day"}
    section = dataset(store, attributes=str(attributes), variables={"target": {"streamflow": depth}})
    message = refused(config({"x": section}), tmp_path, monkeypatch, ConfigError)
    assert expected in message
    assert "datasets.x.variables.target.streamflow" in message
    assert "area: {physical: …, unit: km2} under variables.constant" in message
    section["variables"]["constant"] = {"area": {"physical": "area", "unit": "km2", "scale": 0.00404686}}
    build_inline(config({"x": section}), tmp_path / "i", monkeypatch)
    assert rows(tmp_path / "i", "variables", role="target")[0]["unit"] == "mm/day"


def test_constants_without_an_attributes_store_are_refused(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr")
    section = dataset(store, variables={"target": {"streamflow": "streamflow"}, "constant": {"area": "area"}})
    message = refused(config({"x": section}), tmp_path, monkeypatch, ConfigError)
    assert "datasets.x.attributes" in message
    assert "constant area" in message


@pytest.mark.parametrize("policy", ["warn", "error", "ignore"])
def test_units_that_differ_between_data_sets_follow_the_policy(tmp_path, monkeypatch, policy):
    stores = {
        name: write_store(
            tmp_path / f"{name}.zarr", attrs={"streamflow": {"units": unit}, "precipitation": {"units": same}}
        )
        for name, unit, same in (("a", "m3/s", "mm/day"), ("b", "mm/day", "mm d-1"))
    }
    settings = config({n: dataset(s) for n, s in stores.items()}, missing={"unit_mismatch_policy": policy})
    if policy == "error":
        message = refused(settings, tmp_path, monkeypatch, ConfigError)
        assert "streamflow has unit m3/s in a, mm/day in b" in message
        return
    report, _ = build_inline(settings, tmp_path / "i", monkeypatch)
    told = [w for w in report.warnings if "units differ" in w]
    assert told == ([] if policy == "ignore" else ["units differ: streamflow has unit m3/s in a, mm/day in b"])


def test_data_sets_of_different_steps_share_an_index(tmp_path, monkeypatch):
    """B13: mixed steps are a question for the loader, not for the index."""
    daily = write_store(tmp_path / "d.zarr")
    hourly = write_store(tmp_path / "h.zarr", step_seconds=3600, time_unit="hours")
    build_inline(config({"d": dataset(daily), "h": dataset(hourly)}), tmp_path / "i", monkeypatch)
    assert [r["step_seconds"] for r in rows(tmp_path / "i", "datasets")] == [86400, 3600]


def test_fingerprint_of_a_data_set_changes_with_metadata_not_with_place(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr")

    def fingerprint(path, name):
        section = {**dataset(store), "timeseries": str(path)}
        build_inline(config({"a": section}), tmp_path / name, monkeypatch)
        return rows(tmp_path / name, "datasets")[0]["fingerprint"]

    first = fingerprint(store.path, "i1")
    moved = store.path.rename(tmp_path / "moved.zarr")
    assert fingerprint(moved, "i2") == first
    zarr.open_group(str(moved), mode="r+")["streamflow"].attrs["units"] = "mm"
    assert fingerprint(moved, "i3") != first


def test_a_unit_that_the_store_contradicts_is_said_where_nothing_converts_it(tmp_path, monkeypatch):
    arrays = {"rain": "mm/h", "temp": "K", "odd": "bananas", "flow": "m3/s"}
    store = write_store(
        tmp_path / "s.zarr", variables=tuple(arrays), attrs={n: {"units": u} for n, u in arrays.items()}
    )
    named = {
        "rain": {"physical": "rain", "unit": "mm/day"},
        "temp": {"physical": "temp", "unit": "degC", "offset": -273.15},
        "odd": {"physical": "odd", "unit": "mm/day"},
    }
    target = {"flow": {"physical": "flow", "unit": "m^3 s-1"}}
    section = dataset(store, variables={"relevant": named, "target": target})
    report, _ = build_inline(config({"x": section}), tmp_path / "i", monkeypatch)
    told = [w for w in report.warnings if "units differ" in w]
    assert told == ["units differ: x.rain is configured as mm/day, its store says mm/h; nothing converts it"]
