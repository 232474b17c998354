"""Rows of a query come batch by batch, do not keep others from asking, and fail in DuckDB's own words."""

import subprocess
import sys

import pytest

import headrace
from build_here import build_here
from headrace.loader.queries import BATCH_ROWS
from headrace.schemas.errors import ConfigError
from headrace.schemas.views import VIEWS
from synthetic import write_store

MANY = f"select range as n from range({3 * BATCH_ROWS + 1})"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    path = tmp_path_factory.mktemp("queries")
    store = write_store(path / "s.zarr", basins=2, steps=50, variables=("rain", "flow"))
    names = {"relevant": ["rain"], "target": ["flow"]}
    section = {"timeseries": str(store.path), "t_range_train": ["2000-01-01", "2000-02-19"], "variables": names}
    with headrace.open_index(build_here({"datasets": {"a": section}}, path / "index")) as opened:
        yield opened


def test_rows_come_in_batches_and_are_all_there(index):
    sizes = [batch.num_rows for batch in index.sql_reader(MANY)]
    assert sum(sizes) == 3 * BATCH_ROWS + 1
    assert max(sizes) <= BATCH_ROWS


def test_others_may_ask_while_rows_are_read_and_after_they_were_left(index):
    reader = index.sql_reader(MANY)
    first = reader.read_next_batch().num_rows
    assert index.sql("select count(*) as n from basins").to_pylist() == [{"n": 2}]
    assert index.summary().num_rows == 1
    assert first + sum(batch.num_rows for batch in reader) == 3 * BATCH_ROWS + 1
    index.sql_reader(MANY).close()
    left = index.sql_reader(MANY)
    left.read_next_batch()
    del left
    assert index.sql("select 1 as one").to_pylist() == [{"one": 1}]


@pytest.mark.parametrize("text", ["select nothing from basins", "select * from nowhere", f"select 1 / ({MANY})::date"])
def test_a_wrong_query_is_a_configuration_error(index, text):
    with pytest.raises(ConfigError, match=r"(Binder|Catalog|Parser|Conversion) Error"):
        index.sql(text)


def test_a_failure_in_the_middle_is_one_too(index):
    text = f"select (case when n < {2 * BATCH_ROWS} then '1' else 'x' end)::int as n from ({MANY})"
    with pytest.raises(ConfigError, match="Could not convert string 'x'"):
        for _ in index.sql_reader(text):
            pass


def test_parameters_are_bound_and_views_are_there(index):
    found = index.sql("select basin_id from basins where basin = $basin", basin=1)
    assert found.to_pylist() == [{"basin_id": "01001500"}]
    for name in VIEWS:
        assert index.sql(f"from {name}").num_columns > 1
    months = index.sql("select year, month, start, stop from months").to_pylist()
    assert [tuple(row.values()) for row in months] == [(2000, 1, 0, 31), (2000, 2, 31, 50)]


def test_looking_at_an_index_costs_no_pytorch(index):
    code = (
        "import sys, headrace; index = headrace.open_index(sys.argv[1]); index.summary(); index.sql('from gaps'); "
        "assert not {'torch', 'dask', 'matplotlib', 'xarray'} & set(sys.modules); "
        "import headrace.loader as loader; assert all(getattr(loader, name) for name in loader.__all__)"
    )
    subprocess.run([sys.executable, "-c", code, str(index.path)], check=True)
