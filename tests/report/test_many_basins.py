"""An index of very many basins makes a page that is small, and still says everything that it sums up."""

import json

import numpy as np
import pytest

from headrace.loader import open_index
from headrace.report.coverage import MOST_CELLS, MOST_ROWS
from html_text import elements_of
from large_index import INPUTS, MANY_BASINS, TARGET

MOST_NBYTES = 3_000_000


@pytest.fixture(scope="module")
def elements(large_page):
    html = large_page.read_text(encoding="utf-8")
    assert len(html.encode()) < MOST_NBYTES
    return elements_of(html)


def test_maps_group_basins_and_keep_their_mean(large_index, elements):
    maps = {e.attributes["aria-label"].split(":")[0]: e.attributes for e in elements if "data-map" in e.attributes}
    assert sum(len(m["data-cells"]) // 2 for name, m in maps.items() if name in (*INPUTS, TARGET)) <= MOST_CELLS
    found = maps[TARGET]
    rows, columns = json.loads(found["data-rows"]), json.loads(found["data-columns"])
    assert 1 < len(rows) <= MOST_ROWS
    assert rows[0].startswith("00000000 … ")
    cells = found["data-cells"]
    shares = np.array([int(cells[i : i + 2], 36) / 1000 for i in range(0, len(cells), 2)]).reshape(-1, len(columns))
    # The last group may be smaller than the others.
    edges = [int(row.split(" … ")[0]) for row in rows] + [MANY_BASINS]
    with open_index(large_index) as index:
        text = f"SELECT sum(stop - start)::BIGINT AS n FROM runs WHERE variable = '{TARGET}'"
        observed = index.sql(text).to_pylist()[0]["n"]
    assert (shares.mean(axis=1) * np.diff(edges)).sum() * 365 * len(columns) == pytest.approx(observed, rel=1e-3)


def test_every_basin_can_be_found(elements):
    (data,) = [e.text for e in elements if e.attributes.get("type") == "application/json"]
    rows = json.loads(data)
    assert {row[0] for row in rows} == {f"{n:08d}" for n in range(MANY_BASINS)}
    windows = [int(row[2].replace(",", "")) for row in rows]
    assert windows == sorted(windows)


def test_tables_stay_short(elements):
    assert sum(e.tag in ("td", "th") for e in elements) < 20_000
