"""Basin ids are text whatever the store holds, and time is regular segments or an error that names the index."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from headrace.schemas.errors import ConfigError, SourceError
from indexing import build_inline, config, dataset, rows
from synthetic import write_attributes, write_store


def refused(section, tmp_path, monkeypatch, kind=ConfigError):
    """Return the message of the error that building gives; nothing may be left behind."""
    with pytest.raises(kind) as caught:
        build_inline(config({"a": section}), tmp_path / "i", monkeypatch)
    assert not (tmp_path / "i").exists()
    message = str(caught.value)
    for part in ("where:", "expected:", "got:", "to fix:"):
        assert part in message
    return message


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("id_dtype", ["str", "object", "U", "S"])
def test_ids_of_every_text_type_load_to_the_same_text(tmp_path, monkeypatch, zarr_format, id_dtype):
    """B1, B7: leading zeros stay, and ids are a text column, whatever the store's string type."""
    ids = ["01013500", "é水", "7"] if id_dtype != "S" else ["01013500", "e", "7"]
    store = write_store(tmp_path / "s.zarr", basins=ids, zarr_format=zarr_format, id_dtype=id_dtype)
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    table = pq.read_table(tmp_path / "i" / "basins.parquet")
    assert str(table.schema.field("basin_id").type) == "string"
    assert table["basin_id"].to_pylist() == ids


def test_integer_ids_are_refused_with_both_spellings_or_padded_on_request(tmp_path, monkeypatch):
    """B1: int-coded ids have lost their zeros; the error shows both spellings, id_width restores them."""
    store = write_store(tmp_path / "s.zarr", basins=["01013500", "01022500"], id_dtype="int64")
    message = refused(dataset(store), tmp_path, monkeypatch)
    assert "int64; the first id is '1013500' or '01013500'" in message
    assert "datasets.a.id_width: 8" in message
    attributes = write_attributes(tmp_path / "a.zarr", ["1022500", "1013500"], {"area": [2.0, 1.0]}, id_dtype="int64")
    variables = {"target": {"streamflow": "streamflow"}, "constant": {"area": "area"}}
    section = dataset(store, id_width=8, basins=["1013500"], attributes=str(attributes), variables=variables)
    build_inline(config({"a": section}), tmp_path / "i", monkeypatch)
    assert [r["basin_id"] for r in rows(tmp_path / "i", "basins")] == ["01013500"]
    assert [r["value"] for r in rows(tmp_path / "i", "statics")] == [1.0]


def test_float_ids_are_refused(tmp_path, monkeypatch):
    """B4: floats lose leading zeros and last digits."""
    store = write_store(tmp_path / "s.zarr", basins=["1013500", "2"], id_dtype="float64")
    message = refused(dataset(store), tmp_path, monkeypatch, SourceError)
    assert "basin ids are not text" in message
    assert "float64, first value 1013500.0\n" in message


def test_repeated_basins_are_listed_or_one_row_is_chosen(tmp_path, monkeypatch):
    """B3: A, B, A after a bad concatenation."""
    store = write_store(tmp_path / "s.zarr", basins=["A", "B", "A"])
    message = refused(dataset(store), tmp_path, monkeypatch)
    assert "3 rows for 2 basins: A (2 rows)" in message
    assert "datasets.a.duplicate_basins: first" in message
    for policy, expected in (("first", [("A", 0), ("B", 1)]), ("last", [("B", 1), ("A", 2)])):
        build_inline(config({"a": dataset(store, duplicate_basins=policy)}), tmp_path / policy, monkeypatch)
        assert [(r["basin_id"], r["store_row"]) for r in rows(tmp_path / policy, "basins")] == expected


def test_unknown_basins_are_listed_with_near_matches(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", basins=["01013500", "01022500"])
    message = refused(dataset(store, basins=["1013500", "01022500", "zzz"]), tmp_path, monkeypatch)
    assert "2 of 3 basins are not in the store" in message
    assert "1013500 (near: 01013500), zzz" in message


def test_basin_file_may_hold_blank_lines_crlf_bom_and_spaces(tmp_path, monkeypatch):
    """B6: such files come from spreadsheets and editors."""
    store = write_store(tmp_path / "s.zarr", basins=["01", "02", "03"])
    (tmp_path / "ids.txt").write_bytes("\ufeff01\r\n\r\n 03 \r\n".encode())
    (tmp_path / "c.yaml").write_text(
        f"datasets: {{a: {{timeseries: {store.path}, basins: ids.txt, t_range_train: ['2000-01-01', '2000-01-20'],"
        " variables: {target: [streamflow]}}}"
    )
    from headrace.schemas.config_io import load_config

    build_inline(load_config(tmp_path / "c.yaml"), tmp_path / "i", monkeypatch)
    assert [r["basin_id"] for r in rows(tmp_path / "i", "basins")] == ["01", "03"]


def test_basins_come_in_store_order_with_their_splits(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", basins=["c", "a", "b", "d"])
    section = dataset(store, basins={"train": ["b", "c"], "test": ["a", "b"]})
    build_inline(config({"a": section}), tmp_path / "i", monkeypatch)
    found = [(r["basin"], r["basin_id"], r["store_row"], r["splits"]) for r in rows(tmp_path / "i", "basins")]
    assert found == [(0, "c", 0, "train"), (1, "a", 1, "test"), (2, "b", 2, "train,test")]
    assert {r["basin"] for r in rows(tmp_path / "i", "windows", split="train")} == {0, 2}


@pytest.mark.parametrize(
    ("times", "what", "index"),
    [
        ([0, 2, 1], "is not sorted", 2),
        ([0, 1, 1], "repeats a time", 2),
        ([0.0, np.nan, 2.0], "has a missing time", 1),
        ([0, np.iinfo(np.int64).min, 2], "has a missing time", 1),
    ],
)
def test_time_out_of_order_repeated_or_missing_names_the_first_index(tmp_path, monkeypatch, times, what, index):
    """B8."""
    store = write_store(tmp_path / "s.zarr", steps=3, time_values=times)
    message = refused(dataset(store), tmp_path, monkeypatch, SourceError)
    assert what in message
    assert f"index {index}" in message
    assert f"fix_time: {'sort' if 'sorted' in what else 'drop_duplicates'}" in message


@pytest.mark.parametrize(
    ("calendar", "first", "last", "steps"),
    [("noleap", "2000-02-27", "2000-03-02", 4), ("360_day", "2000-02-29", "2000-03-01", 3)],
)
def test_dates_are_those_of_the_calendar_of_the_data_set(tmp_path, monkeypatch, calendar, first, last, steps):
    """B10: no 29 February in noleap, a 30 February in 360_day."""
    store = write_store(tmp_path / "s.zarr", steps=90, calendar=calendar)
    build_inline(config({"a": dataset(store, t_range_train=[first, last])}), tmp_path / "i", monkeypatch)
    (period,) = rows(tmp_path / "i", "periods")
    assert period["stop"] - period["start"] == steps
    assert (period["time_start"], period["time_last"]) == (f"{first}T00:00:00", f"{last}T00:00:00")
    assert rows(tmp_path / "i", "datasets")[0]["calendar"] == calendar
    if calendar == "360_day":
        build_inline(
            config({"a": dataset(store, t_range_train=["2000-02-30", "2000-02-30"])}), tmp_path / "i", monkeypatch
        )
        assert rows(tmp_path / "i", "periods")[0]["time_start"] == "2000-02-30T00:00:00"


def test_step_comes_from_differences_and_months_are_refused(tmp_path, monkeypatch):
    """B12: records of one, two and three steps; monthly data."""
    for steps, seconds in ((1, 86400), (2, 3600), (3, 3600)):
        name = tmp_path / f"{steps}.zarr"
        store = write_store(name, steps=steps, step_seconds=seconds, time_unit="hours")
        build_inline(config({"a": dataset(store)}), tmp_path / f"i{steps}", monkeypatch)
        assert rows(tmp_path / f"i{steps}", "datasets")[0]["step_seconds"] == seconds
    monthly = write_store(tmp_path / "m.zarr", steps=3, time_values=[0, 31, 60])
    message = refused(dataset(monthly), tmp_path, monkeypatch, SourceError)
    assert "time step is not regular" in message
    assert "monthly" in message


def test_gap_in_the_axis_makes_segments_that_no_window_crosses(tmp_path, monkeypatch):
    """B14, B15: one missing day neither rejects the data set nor counts as adjacent."""
    store = write_store(tmp_path / "s.zarr", basins=1, steps=10, gaps={4: 1})
    report, _ = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert [(r["start"], r["stop"]) for r in rows(tmp_path / "i", "segments")] == [(0, 5), (5, 10)]
    assert [(r["start"], r["stop"]) for r in rows(tmp_path / "i", "windows")] == [(0, 3), (5, 8)]
    assert {r["reason"]: r["num_windows"] for r in rows(tmp_path / "i", "dropped")} == {
        "record_too_short": 2,
        "time_gap": 2,
    }
    assert "a: the time axis has 1 gaps; no window crosses them" in report.warnings
    assert [(r["start"], r["stop"]) for r in rows(tmp_path / "i", "runs", variable="streamflow")] == [(0, 10)]


def test_time_in_tiny_chunks_is_read_once(tmp_path, monkeypatch):
    """C9: a first write of one step fixes the chunk size of the coordinate for ever."""
    store = write_store(tmp_path / "s.zarr", steps=200, time_chunk=1)
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert rows(tmp_path / "i", "datasets")[0]["num_steps"] == 200


@pytest.mark.parametrize("consolidated", [False, True])
def test_format_3_store_opens_with_and_without_consolidated_metadata(tmp_path, monkeypatch, consolidated):
    """C11."""
    store = write_store(tmp_path / "s.zarr", zarr_format=3, consolidated=consolidated)
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert rows(tmp_path / "i", "stats", scope="global", variable="streamflow")[0]["count"] == 60


def test_period_beyond_the_record_is_clipped_with_one_warning_that_names_both(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=20)
    section = dataset(store, t_range_train=["1990-01-01", "2000-01-10"])
    report, _ = build_inline(config({"a": section}), tmp_path / "i", monkeypatch)
    (warning,) = report.warnings
    assert "datasets.a.t_range_train: 1990-01-01 to 2000-01-10" in warning
    assert "2000-01-01T00:00:00 to 2000-01-20T00:00:00; clipped to" in warning
    assert rows(tmp_path / "i", "periods")[0] | {"start": 0, "stop": 10} == rows(tmp_path / "i", "periods")[0]


def test_period_without_overlap_is_refused(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=20)
    message = refused(dataset(store, t_range_test=["2010-01-01", "2010-12-31"]), tmp_path, monkeypatch)
    assert "period lies outside the record" in message
    assert "datasets.a.t_range_test" in message
    assert "2000-01-01T00:00:00 to 2000-01-20T00:00:00" in message
