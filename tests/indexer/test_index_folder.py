"""What is on disk: exact schemas, equal bytes for equal content, and nothing half-written taken for an index."""

import fcntl
import json
import os

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.indexer import write as write_module
from headrace.schemas.errors import ConfigError
from headrace.schemas.manifest import IndexManifest
from headrace.schemas.tables import TABLES
from headrace.schemas.variables import DecodeRule, rule_from_json
from indexing import build_inline, config, dataset, rows, table_bytes
from synthetic import write_attributes, write_store


@pytest.fixture
def store(tmp_path):
    return write_store(
        tmp_path / "s.zarr", basins=3, steps=30, missing={"streamflow": lambda b, t: np.ones((b, t), bool)}
    )


@pytest.fixture
def index(store, tmp_path, monkeypatch):
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    return tmp_path / "i"


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_has_exactly_its_schema_even_without_rows(index, name):
    """G1, G2: the target is missing throughout, so several tables are empty; none is nullable or inferred."""
    found = pq.read_table(index / f"{name}.parquet")
    assert found.schema.equals(TABLES[name].schema, check_metadata=True)
    assert sum(column.null_count for column in found.columns) == 0
    keys = found.select(TABLES[name].key)
    assert keys.equals(keys.sort_by([(k, "ascending") for k in TABLES[name].key]))
    ((count,),) = duckdb.sql(f"select count(*) from read_parquet('{index / name}.parquet')").fetchall()
    assert count == found.num_rows


def test_empty_part_is_written_and_read_with_its_schema(index):
    """G1: units without any run are rows like all others."""
    parts = [pq.read_table(p) for p in (index / "parts").glob("*.parquet")]
    runs = [len(r) for part in parts for r in part["runs"].to_pylist()]
    assert sorted(runs) == [0, 3]
    assert str(parts[0].schema.field("runs").type).startswith("list<element: struct<row: int32")


def test_manifest_names_every_table_with_size_and_digest(index):
    manifest = IndexManifest.from_json((index / "manifest.json").read_text(), "here")
    assert set(manifest.tables) == set(TABLES)
    for entry in manifest.tables.values():
        assert (index / entry.path).stat().st_size == entry.nbytes
        assert pq.read_metadata(index / entry.path).num_rows == entry.num_rows
    assert set(manifest.parts) == {p.name for p in (index / "parts").glob("*.parquet")}


def test_folder_holds_the_index_and_nothing_else(index):
    names = {p.name for p in index.iterdir()}
    assert names == {*(f"{n}.parquet" for n in TABLES), "manifest.json", "views.sql", "parts"}


def test_decode_rule_comes_back_from_the_table_bit_for_bit(store, tmp_path, monkeypatch):
    wanted = {"physical": "streamflow", "scale": 0.1, "missing_values": [float("nan"), -1e300], "valid_min": -0.0}
    settings = config({"a": dataset(store, variables={"target": {"q": wanted}})})
    build_inline(settings, tmp_path / "i", monkeypatch)
    (row,) = rows(tmp_path / "i", "variables")
    rule = rule_from_json(row["decode_rule"])
    assert isinstance(rule, DecodeRule)
    assert rule.digest() == row["decode_digest"]
    assert (rule.scale, repr(rule.valid_min), repr(rule.missing_values)) == (0.1, "-0.0", "(nan, -1e+300)")
    assert (row["scale"], row["storage_fill_value"], row["dtype"]) == (0.1, "nan", "float32")


def test_failure_while_writing_leaves_no_index(store, tmp_path, monkeypatch):
    settings = config({"a": dataset(store)})
    build_inline(settings, tmp_path / "i", monkeypatch)
    before = table_bytes(tmp_path / "i")

    def full_disk(path, text):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(write_module, "write_text", full_disk)
        (tmp_path / "i" / "views.sql").unlink()
        with pytest.raises(OSError, match="No space"):
            build_inline(settings, tmp_path / "i", monkeypatch)
    assert not (tmp_path / "i" / "manifest.json").exists()
    build_inline(settings, tmp_path / "i", monkeypatch)
    assert table_bytes(tmp_path / "i") == before


def test_a_table_that_does_not_reach_the_disk_leaves_the_old_index_alone(store, index, tmp_path, monkeypatch):
    before = {path: path.read_bytes() for path in index.iterdir() if path.is_file()}
    failing = os.fsync

    def full_disk(handle):
        if os.readlink(f"/proc/self/fd/{handle}").endswith("runs.parquet.new.tmp"):
            raise OSError(28, os.strerror(28))
        failing(handle)

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ConfigError, match="index cannot be written"):
        build_inline(
            config({"a": dataset(store)}, window={"hindcast_length": 4, "forecast_length": 0, "warmup_length": 2}),
            index,
            monkeypatch,
        )
    assert {path: path.read_bytes() for path in index.iterdir() if path.is_file()} == before


def test_failed_new_version_leaves_the_old_index_valid_until_tables_are_replaced(index, tmp_path, monkeypatch):
    broken = config({"a": {"timeseries": str(tmp_path / "none.zarr"), "variables": {"target": ["q"]}}})
    before = table_bytes(index)
    with pytest.raises(Exception, match="store not found"):
        build_inline(broken, index, monkeypatch)
    assert table_bytes(index) == before


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_output_that_is_something_else_is_refused(store, tmp_path, monkeypatch, kind):
    out = tmp_path / "thesis"
    if kind == "folder":
        out.mkdir()
        (out / "chapter1.tex").write_text("...")
    else:
        out.write_text("...")
    with pytest.raises(ConfigError, match=r"holds no index|output is a file") as caught:
        build_inline(config({"a": dataset(store)}), out, monkeypatch)
    assert str(out) in str(caught.value)
    assert "choose another --out" in str(caught.value)
    assert kind == "file" or [p.name for p in out.iterdir()] == ["chapter1.tex"]


def test_output_below_a_file_is_refused_in_words(store, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="output folder cannot be written") as caught:
        build_inline(config({"a": dataset(store)}), tmp_path / "file" / "i", monkeypatch)
    assert "Not a directory" in str(caught.value)


def test_second_builder_is_refused(store, tmp_path, monkeypatch):
    (tmp_path / "i" / "parts").mkdir(parents=True)
    with (tmp_path / "i" / "parts" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another build works in this folder"):
            build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)


def test_leftovers_of_killed_builders_are_swept(store, tmp_path, monkeypatch):
    (tmp_path / "i" / "parts").mkdir(parents=True)
    for name in ("parts/aa.parquet.123.tmp", "runs.parquet.new.tmp"):
        (tmp_path / "i" / name).write_bytes(b"half")
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert list((tmp_path / "i").rglob("*.tmp")) == []


def test_index_holds_no_time_of_day_and_no_user(index):
    for name, content in table_bytes(index).items():
        assert os.environ.get("USER", "nobody-here").encode() not in content or name == "manifest.json"
    assert "created" not in json.loads((index / "manifest.json").read_text())


@pytest.fixture
def views(tmp_path, monkeypatch):
    """An index with a gap in time, missing values and a quote in the id of the data set."""
    holes = np.zeros((2, 400), bool)
    holes[0, 10:20] = True
    holes[1, 300:] = True
    store = write_store(
        tmp_path / "v.zarr",
        basins=["01", "02"],
        steps=400,
        time_start="1999-12-01",
        missing={"streamflow": holes},
        gaps={99: 7},
    )
    attributes = write_attributes(tmp_path / "a.zarr", ["01", "02"], {"area": [1.0, 2.0]})
    names = {"relevant": ["precipitation"], "target": ["streamflow"], "constant": ["area"]}
    section = dataset(store, attributes=str(attributes), variables=names)
    build_inline(config({"d'or": section}), tmp_path / "i", monkeypatch)
    monkeypatch.chdir(tmp_path / "i")
    with duckdb.connect() as connection:
        connection.execute((tmp_path / "i" / "views.sql").read_text())
        yield connection


def test_views_answer_without_headrace(views):
    coverage = views.sql("select * from coverage where variable = 'streamflow' and basin_id = '02'").fetchall()
    assert coverage == [
        ("d'or", "02", 1999, "streamflow", 31, 31, 1.0),
        ("d'or", "02", 2000, "streamflow", 359, 269, 269 / 359),
        ("d'or", "02", 2001, "streamflow", 10, 0, 0.0),
    ]
    gaps = views.sql("select basin_id, variable, start, stop, num_steps from gaps").fetchall()
    assert gaps == [("01", "streamflow", 10, 20, 10), ("02", "streamflow", 300, 400, 100)]
    assert views.sql("select step, resumes_at from time_gaps").fetchall() == [(100, "2000-03-17T00:00:00")]


def test_views_count_windows_and_reasons(views):
    counts = views.sql("select basin_id, num_windows from window_counts").fetchall()
    dropped = dict(views.sql("select reason, num_windows from why_dropped").fetchall())
    assert counts == [("01", 400 - 2 * 2 - 10), ("02", 300 - 2 * 2)]
    assert dropped == {"record_too_short": 4, "time_gap": 4, "target_missing": 110}
    assert sum(n for _, n in counts) + sum(dropped.values()) == 2 * 400


def test_views_tell_what_reading_costs(views):
    costs = views.sql("select variable, num_chunks, with_data, decoded_nbytes from read_cost").fetchall()
    assert costs == [("precipitation", 1, 1, 3200), ("streamflow", 1, 1, 3200)]


def test_years_follow_the_calendar_of_the_data_set(tmp_path, monkeypatch):
    """B10: 360-day years, which no SQL date type knows."""
    store = write_store(tmp_path / "c.zarr", basins=1, steps=800, calendar="360_day", time_start="2000-02-28")
    build_inline(config({"a": dataset(store, t_range_train=["2000-02-30", "2001-12-30"])}), tmp_path / "i", monkeypatch)
    monkeypatch.chdir(tmp_path / "i")
    with duckdb.connect() as connection:
        connection.execute((tmp_path / "i" / "views.sql").read_text())
        years = connection.sql("select year, start, stop from years").fetchall()
    assert years == [(2000, 0, 303), (2001, 303, 663), (2002, 663, 800)]


def test_parquet_files_are_plain_zstd(index):
    metadata = pq.read_metadata(index / "runs.parquet")
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert isinstance(pq.read_schema(index / "runs.parquet"), pa.Schema)
