"""The opened index: what it answers, and how it refuses what is no index, or a damaged one."""

import json
import shutil
from datetime import date, timedelta
from pathlib import Path

import cftime
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace
from build_here import build_here
from headrace.schemas.errors import ConfigError, IndexFormatError, SourceError, StaleIndexError
from headrace.schemas.tables import TABLES
from oracle_loader import OracleLoader
from synthetic import write_store


@pytest.fixture
def copied(joint, tmp_path) -> Path:
    return Path(shutil.copytree(joint.index, tmp_path / "copied index"))


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_windows_are_runs_of_starts_by_name_of_data_set_and_basin(joint, index, split):
    table = index.windows(split)
    assert table.column_names == ["dataset_id", "basin_id", "start", "stop", "num_windows", "stride"]
    oracle = OracleLoader(joint.config, split)
    wanted = sorted((oracle.dataset_ids[d], oracle.datasets[d].ids[b], s) for d, b, s in oracle.windows)
    found = [
        (row["dataset_id"], row["basin_id"], start)
        for row in table.to_pylist()
        for start in range(row["start"], row["stop"], row["stride"])
    ]
    assert sorted(found) == wanted
    assert sum(table["num_windows"].to_pylist()) == len(wanted)


def test_windows_of_no_split_are_refused(index):
    with pytest.raises(ConfigError, match="no such split"):
        index.windows("training")


def test_stats_are_those_of_numpy_over_the_training_period(joint, index):
    rows = {(r["scope"], r["dataset_id"], r["basin"], r["variable"]): r for r in index.stats().to_pylist()}
    for name, store in joint.stores.items():
        values = store.truth["flow"][:, :70].astype(np.float64)
        found = rows["dataset", name, -1, "flow"]
        assert found["count"] == np.isfinite(values).sum()
        assert found["mean"] == pytest.approx(np.nanmean(values), rel=1e-12)
        assert found["std"] == pytest.approx(np.nanstd(values), rel=1e-12)
        assert (found["min"], found["max"]) == (np.nanmin(values), np.nanmax(values))
    assert {r["scope"] for r in rows.values()} == {"global", "dataset", "basin"}


def test_sql_answers_over_the_tables_with_bound_parameters(index):
    found = index.sql("SELECT count(*) AS n FROM basins WHERE dataset_id = $name", name="river")
    assert found.to_pylist() == [{"n": 5}]
    assert isinstance(index.sql("SELECT * FROM datasets"), pa.Table)


@pytest.mark.parametrize(
    "text",
    ["SELEC 1", "SELECT * FROM nothing", "SELECT CAST(basin_id AS DATE) FROM basins", "SELECT $missing", ""],
)
def test_a_query_that_fails_is_a_configuration_error_with_the_words_of_duckdb(index, text):
    with pytest.raises(ConfigError, match=r"(?s)query cannot be run.*got: +\w+"):
        index.sql(text)


def test_times_are_those_of_the_store(joint, index):
    for name, store in joint.stores.items():
        assert np.array_equal(index.times(name), store.times)
    segments = index.time_axis("river").segments
    assert [(s.start, s.stop) for s in segments] == [(0, 71), (71, 120)]


def test_times_of_another_calendar_are_cftime(tmp_path):
    store = write_store(tmp_path / "s.zarr", basins=1, steps=70, time_start="2004-02-01", calendar="noleap")
    data = {
        "datasets": {
            "a": {
                "timeseries": str(store.path),
                "t_range_train": ["2004-02-01", "2004-04-01"],
                "variables": {"relevant": ["precipitation"], "target": ["streamflow"]},
            }
        },
        "window": {"hindcast_length": 3, "forecast_length": 1},
    }
    with headrace.open_index(build_here(data, tmp_path / "index")) as index:
        times = index.times("a")
        days = [date(2003, 2, 1) + timedelta(days=n) for n in range(70)]  # a year without 29 February
        assert [(t.month, t.day) for t in times] == [(d.month, d.day) for d in days]
        assert times[0] == cftime.DatetimeNoLeap(2004, 2, 1)


def test_a_data_set_that_is_not_there_is_refused_with_those_that_are(index):
    for ask in (index.times, index.time_axis):
        with pytest.raises(ConfigError, match=r"(?s)no such data set.*river, creek"):
            ask("rivers")


def test_the_index_says_what_it_is(joint, index):
    assert index.dataset_ids == ["river", "creek"]
    assert str(joint.index) in repr(index)
    assert index.manifest.index_digest in repr(index)


def test_a_closed_index_says_so_and_its_loaders_go_on(joint):
    with headrace.open_index(str(joint.index)) as index:
        loader = headrace.WindowLoader(index, "train", memory_budget=2400)
    with loader:
        assert sum(len(batch) for batch in loader) == loader.num_windows
    with pytest.raises(ConfigError, match="closed"):
        headrace.WindowLoader(index, "train")


def test_an_index_that_was_built_again_is_to_be_opened_again(joint, copied):
    """Answers that were kept would not fit those of the new tables."""
    with headrace.open_index(copied) as index:
        before = index.windows("train")
        (copied / "manifest.json").touch()
        assert index.windows("train") == before
        build_here({**joint.config.as_dict(), "window": {"hindcast_length": 3, "warmup_length": 0}}, copied)
        asks = (
            index.stats,
            lambda: index.windows("train"),
            lambda: index.sql("SELECT * FROM windows"),
            lambda: headrace.WindowLoader(index, "train"),
        )
        for ask in asks:
            with pytest.raises(StaleIndexError, match=r"(?s)built again.*open it again"):
                ask()
    with headrace.open_index(copied) as index:
        assert index.windows("train") != before


def test_no_folder_is_a_source_error(tmp_path):
    with pytest.raises(SourceError, match="index not found"):
        headrace.open_index(tmp_path / "nothing")


def test_a_folder_without_manifest_is_no_index(copied):
    (copied / "manifest.json").unlink()
    with pytest.raises(IndexFormatError, match=r"(?s)no finished index.*parquet"):
        headrace.open_index(copied)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "other", "format_version": 1}', "\xff"])
def test_a_damaged_manifest_is_no_index(copied, text):
    (copied / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(IndexFormatError, match=r"manifest\.json"):
        headrace.open_index(copied)


def test_another_format_version_is_refused(copied):
    data = json.loads((copied / "manifest.json").read_text())
    (copied / "manifest.json").write_text(json.dumps({**data, "format_version": 99}))
    with pytest.raises(IndexFormatError, match="another format"):
        headrace.open_index(copied)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_gone_shortened_or_overwritten_is_named(copied, name):
    path = copied / f"{name}.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    with pytest.raises(IndexFormatError, match=rf"{name}\.parquet"):
        headrace.open_index(copied)
    path.write_bytes(b"\x00" * len(content))
    with pytest.raises(IndexFormatError, match=rf"{name}\.parquet"):
        headrace.open_index(copied)
    path.unlink()
    with pytest.raises(IndexFormatError, match=rf"(?s){name}\.parquet.*no file"):
        headrace.open_index(copied)


def test_a_table_broken_inside_is_an_index_format_error_when_it_is_used(copied):
    path = copied / "runs.parquet"
    content = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(0)
    for column in range(group.num_columns):
        start = group.column(column).data_page_offset
        content[start : start + 12] = b"\xff" * 12
    path.write_bytes(bytes(content))
    with (
        headrace.open_index(copied) as index,
        pytest.raises(IndexFormatError, match="table cannot be read"),
    ):
        headrace.WindowLoader(index, "train", window={"hindcast_length": 7})


def test_an_index_may_lie_anywhere(joint, tmp_path):
    place = shutil.copytree(joint.index, tmp_path / "it's [1] é *")
    with headrace.open_index(place) as index, headrace.WindowLoader(index, "train") as loader:
        assert sum(len(batch) for batch in loader) > 0
