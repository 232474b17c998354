"""An index opened at an s3:// URL: the answers of a local one, and only the tables that an answer takes."""

import gc
import json
import os
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import pytest

import headrace
from headrace.loader.fetched_tables import FetchedTables
from headrace.loader.named_tables import names_in
from headrace.loader.tables import NAMES
from headrace.objects.s3_folder import S3Folder
from headrace.schemas.errors import ConfigError, IndexFormatError, SourceError, StorageError
from headrace.schemas.tables import TABLES
from headrace.schemas.time_axis import axis_from_rows
from headrace.schemas.views import VIEWS, view_statements
from joint_stores import write_joint

AXIS = axis_from_rows([(0, 40, 0)], 86400, "standard")
_KINDS = {"string": "VARCHAR", "int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN"}


@pytest.fixture(scope="session")
def joint(tmp_path_factory):
    return write_joint(tmp_path_factory.mktemp("joint"))


@pytest.fixture
def url(joint, bucket) -> str:
    return bucket.upload(joint.index, "some/index")


@pytest.fixture
def place(bucket) -> Path:
    """The same as files."""
    return bucket.path / "some" / "index"


@pytest.fixture
def fetched(monkeypatch) -> list[str]:
    """Names of objects as they are read."""
    names, read = [], S3Folder.read

    def noted(folder, name):
        names.append(name)
        return read(folder, name)

    monkeypatch.setattr(S3Folder, "read", noted)
    return names


def test_threads_may_ask_at_once(url, joint, bucket):
    """Each table is fetched by one of them, and each view made by one."""
    queries = [f"select count(*) n from {name}" for name in (*TABLES, *VIEWS)]
    with headrace.open_index(joint.index) as here:
        expected = [here.sql(query).to_pylist() for query in queries]
    with headrace.open_index(url, bucket.storage) as opened, ThreadPoolExecutor(8) as threads:
        for _ in range(2):
            assert list(threads.map(lambda query: opened.sql(query).to_pylist(), queries)) == expected
            named = list(threads.map(lambda _: opened.windows("train"), range(8)))
            assert all(table.equals(named[0]) for table in named)


@pytest.fixture(autouse=True)
def private(monkeypatch, tmp_path) -> Path:
    """The system's folder for temporary files."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_answers_are_those_of_the_local_index(url, joint, bucket):
    with headrace.open_index(url, bucket.storage) as there, headrace.open_index(joint.index) as here:
        assert there.path == url
        assert f"Index('{url}', datasets=['river', 'creek']" in repr(there)
        for split in ("train", "test"):
            assert there.windows(split).equals(here.windows(split))
        assert there.stats().equals(here.stats())
        for name in here.dataset_ids:
            assert np.array_equal(there.times(name), here.times(name))
        for name in (*TABLES, *VIEWS):
            text = f"select * from {name} order by all"
            assert repr(there.sql(text).to_pylist()) == repr(here.sql(text).to_pylist())  # NaN equals itself here


def test_opening_takes_the_manifest_and_what_tells_whether_it_is_stale(url, bucket, fetched):
    headrace.open_index(url, bucket.storage).close()
    assert fetched == ["manifest.json", "datasets.parquet", "arrays.parquet"]


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("select 1", ""),
        ("select count(*) from runs", "runs"),
        ("SELECT * FROM Moments LIMIT 1", "moments"),
        ("with w as (from windows) select * from w join basins using (dataset_id, basin)", "windows basins"),
        ("create view v as select * from statics; select * from v", "statics"),
        ("select c.state as windows from chunks as c", "chunks"),
        ("select 'runs and moments' as words", ""),
        ("describe segments", "segments"),
        ("from why_dropped", "segments dropped"),
        ("select * from coverage", "segments basins runs variables"),
        ("explain select * from stats", "stats"),
        ("show tables", " ".join(TABLES)),
        ("from query_table('ru' || 'ns')", " ".join(TABLES)),
    ],
)
def test_a_query_fetches_the_tables_it_reads_and_no_other(url, bucket, fetched, text, tables):
    with headrace.open_index(url, bucket.storage) as index:
        del fetched[:]
        index.sql(text)
        wanted = {f"{name}.parquet" for name in tables.split()} - {"datasets.parquet", "arrays.parquet"}
        assert set(fetched) == wanted
        assert len(fetched) == len(wanted)
        index.sql(text.replace("create view v", "create view w").replace("from v", "from w"))
        assert len(fetched) == len(wanted)


@pytest.mark.parametrize("topic", ["windows", "stats", "loader"])
def test_the_methods_fetch_what_they_answer_from(url, bucket, fetched, topic):
    with headrace.open_index(url, bucket.storage) as index:
        del fetched[:]
        if topic == "loader":
            headrace.WindowLoader(index, "train").close()
        else:
            index.windows("train") if topic == "windows" else index.stats()
    wanted = {
        "windows": "basins windows",
        "stats": "stats",
        "loader": "basins chunks moments periods segments statics time_order variables windows",
    }[topic]
    assert sorted(fetched) == [f"{name}.parquet" for name in wanted.split()]


def test_a_loader_serves_the_batches_of_the_local_index(url, joint, bucket):
    batches = {}
    for name, index in (
        ("there", headrace.open_index(url, bucket.storage)),
        ("here", headrace.open_index(joint.index)),
    ):
        with index, headrace.WindowLoader(index, "train", batch_size=32, seed=3) as loader:
            batches[name] = [(b.x.numpy().copy(), b.y.numpy().copy(), b.start.numpy().copy()) for b in loader]
    assert len(batches["there"]) == len(batches["here"]) > 1
    for there, here in zip(batches["there"], batches["here"], strict=True):
        for one, other in zip(there, here, strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_was_fetched_lies_in_a_private_folder_that_goes_with_the_index(url, bucket, private):
    index = headrace.open_index(url, bucket.storage)
    (folder,) = private.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(p.name for p in folder.glob("*.parquet")) == ["arrays.parquet", "datasets.parquet"]
    index.close()
    assert list(private.iterdir()) == []
    with pytest.raises(ConfigError, match="index is closed"):
        index.windows("train")
    with pytest.raises(ConfigError):
        index.sql("select * from runs")
    index.close()


def test_an_index_that_is_dropped_leaves_nothing(url, bucket, private):
    index = headrace.open_index(url, bucket.storage)
    assert list(private.iterdir())
    del index
    gc.collect()
    assert list(private.iterdir()) == []


def test_a_query_reads_no_other_file_than_tables(url, bucket, tmp_path):
    (tmp_path / "other.csv").write_text("a\n1\n")
    with headrace.open_index(url, bucket.storage) as index:
        for text in (f"from '{tmp_path / 'other.csv'}'", f"copy runs to '{tmp_path / 'out.csv'}'", "set threads = 1"):
            with pytest.raises(ConfigError, match="query cannot be run"):
                index.sql(text)


def test_no_other_file_is_opened_to_see_which_tables_a_query_reads(url, bucket, tmp_path):
    """Not even one that would be waited for, such as a pipe."""
    file = tmp_path / "other.csv"
    file.write_text("a\n1\n")
    with headrace.open_index(url, bucket.storage) as index:
        tables = index._tables
        assert isinstance(tables, FetchedTables)
        assert tables.read_by(f"SELECT * FROM basins, read_csv('{file}')") == {"basins"}
        with pytest.raises(duckdb.PermissionException):
            tables._empty.get_table_names(f"SELECT * FROM read_csv('{file}')")


def test_nothing_there_is_a_source_error(bucket):
    with pytest.raises(SourceError, match="index not found") as caught:
        headrace.open_index(f"{bucket.url}/none", bucket.storage)
    assert f"headrace build-index CONFIG --out {bucket.url}/none" in str(caught.value)


def test_no_bucket_is_said(bucket):
    with pytest.raises(StorageError, match="bucket not found"):
        headrace.open_index("s3://no-such-bucket/i", bucket.storage)


def test_without_a_manifest_it_is_no_index(url, place, bucket):
    (place / "manifest.json").unlink()
    with pytest.raises(IndexFormatError, match="folder is no finished index") as caught:
        headrace.open_index(url, bucket.storage)
    assert "arrays.parquet, basins.parquet" in str(caught.value)
    assert "what is scanned so far is kept" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"format": "other", "format_version": 1}'])
def test_a_damaged_manifest_is_no_index(url, place, bucket, content):
    (place / "manifest.json").write_bytes(content)
    with pytest.raises(IndexFormatError) as caught:
        headrace.open_index(url, bucket.storage)
    assert f"{url}/manifest.json" in str(caught.value)


def test_a_manifest_that_names_files_elsewhere_is_refused(url, place, bucket):
    data = json.loads((place / "manifest.json").read_text())
    data["tables"]["runs"]["path"] = "../../secret.parquet"
    (place / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(IndexFormatError, match="a table outside the folder"):
        headrace.open_index(url, bucket.storage)


@pytest.mark.parametrize("damage", ["shortened", "overwritten", "gone"])
def test_a_table_that_the_manifest_does_not_mean_is_refused_when_it_is_wanted(url, place, bucket, damage):
    table = place / "runs.parquet"
    content = table.read_bytes()
    if damage == "gone":
        table.unlink()
    else:
        table.write_bytes(content[:-1] if damage == "shortened" else content[:-1] + b"x")
    with headrace.open_index(url, bucket.storage) as index:
        assert index.stats().num_rows
        with pytest.raises(IndexFormatError, match="table does not fit the manifest") as caught:
            index.sql("select * from runs")
    assert f"{url}/runs.parquet" in str(caught.value)
    assert {"gone": "no file", "shortened": "bytes", "overwritten": "SHA-256"}[damage] in str(caught.value)


def test_a_full_disk_is_said_in_words(url, bucket, monkeypatch, private):
    def full(path, content):
        raise OSError(28, os.strerror(28))

    with headrace.open_index(url, bucket.storage) as index, monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(ConfigError, match="cannot be kept here") as caught:
            index.stats()
    assert str(private) in str(caught.value)
    assert "No space left on device" in str(caught.value)


@pytest.mark.parametrize("place", ["gs://bucket/index", "s3://", "http://host/index", Path("s3://bucket/index")])
def test_other_urls_and_urls_as_paths_are_configuration_errors(place):
    with pytest.raises(ConfigError, match=r"scheme is not supported|cannot be read|made a Path"):
        headrace.open_index(place)


def test_every_query_of_the_package_fetches_what_it_reads():
    """The tables a query reads are found without any of them; DuckDB itself tells where all are there."""
    empty, full = duckdb.connect(), duckdb.connect()
    for name, table in TABLES.items():
        columns = ", ".join(f'NULL::{_KINDS[str(field.type)]} AS "{field.name}"' for field in table.schema)
        full.execute(f"create view {name} as select {columns}")
    full.execute(view_statements({"a": AXIS}))
    folder = Path(headrace.__file__).parent
    files = [*(folder / "loader" / "sql").glob("*.sql"), *(folder / "commands").glob("*.sql")]
    files += (folder / "report" / "sql").glob("*.sql")
    assert len(files) > 20
    for file in files:
        text = file.read_text()
        read = full.get_table_names(re.sub(r"\$\w+", "NULL", text))
        assert read & set(NAMES) <= names_in(empty, text, NAMES), file.name
