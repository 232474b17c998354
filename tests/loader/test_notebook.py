"""What a notebook shows of an index, a loader and a configuration says what they are, and shows markup as text."""

import re

import pytest

import headrace
from build_here import build_here
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config
from headrace.schemas.html_text import facts_html, table_html
from synthetic import write_store


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("notebook")
    store = write_store(path / "s.zarr", basins=2, steps=50, variables=("rain", "flow"))
    names = {"relevant": ["rain"], "target": ["flow"]}
    section = {"timeseries": str(store.path), "t_range_train": ["2000-01-01", "2000-02-19"], "variables": names}
    return build_here({"datasets": {"a<b": section}, "window": {"hindcast_length": 2}}, path / "index")


def words(html):
    return re.sub(r"<[^>]*>", " ", html).split()


def test_an_index_shows_its_windows_per_split(folder):
    with headrace.open_index(folder) as index:
        html = index._repr_html_()
        assert "a<b" in repr(index)
    assert "a&lt;b" in html
    assert "a<b" not in html
    # 50 days, the first 2 of them no target: 48 windows in each of 2 basins.
    assert words(html)[-8:] == ["a&lt;b", "train", "2000-01-01", "2000-02-19", "2", "2", "96", "4"]
    assert {"rain", "flow"} <= set(words(html))


def test_a_loader_shows_what_it_serves(folder):
    with headrace.open_index(folder) as index, headrace.WindowLoader(index, "train", batch_size=10) as loader:
        html = loader._repr_html_()
        text = repr(loader)
    assert "a&lt;b (2)" in html
    assert "10 of 10 windows" in html
    assert "[10, 3, 1]" in html
    assert "rank" not in words(html)
    assert text.startswith("WindowLoader(split='train', windows=96, batches=10, batch_size=10, x=['rain'], y=['flow']")


def test_a_loader_of_a_rank_says_which(folder):
    ranks = {"rank": 1, "world_size": 2, "batch_size": 5}
    with headrace.open_index(folder) as index, headrace.WindowLoader(index, "train", **ranks) as loader:
        assert "1 of 2" in loader._repr_html_()


def test_a_closed_index_still_says_what_it_was(folder):
    index = headrace.open_index(folder)
    index.close()
    assert "closed" in index._repr_html_()
    assert "a<b" in repr(index)


def test_a_configuration_is_a_line_that_opens_into_yaml(folder):
    with headrace.open_index(folder) as index:
        config = index.config
    assert repr(config) == (
        "Config(datasets=['a<b'], inputs=['rain'], targets=['flow'], statics=[], window=3 steps, targets on the last 1)"
    )
    html = config._repr_html_()
    assert "hindcast_length: 2" in html
    assert "a<b" not in html
    assert isinstance(config, Config)
    assert "x.zarr" in repr(parse_config({"datasets": {"x": {"timeseries": "x.zarr"}}}).datasets["x"])


def test_cells_are_escaped():
    assert "<script>" not in facts_html("<script>", {"<script>": "<script>"}) + table_html(["<script>"], [["<script>"]])
