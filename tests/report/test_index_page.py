"""The page about an index says what its tables hold, and lets nothing in them run."""

import json
import re

import numpy as np
import pytest

from build_here import build_here
from headrace.loader import open_index
from headrace.loader.read_forecast import forecast_reads
from headrace.report.index_page import index_page
from html_text import elements_of, table_rows
from report_folders import ATTACK, UNIT
from synthetic import write_attributes, write_store


def text_of(page):
    return page.read_text(encoding="utf-8")


def maps_of(html):
    return [e.attributes for e in elements_of(html) if "data-map" in e.attributes]


def shares_of(attributes):
    """Decode the cells of a map as the page's script does: thousandths in base 36."""
    cells = attributes["data-cells"]
    values = [np.nan if cells[i : i + 2] == "--" else int(cells[i : i + 2], 36) / 1000 for i in range(0, len(cells), 2)]
    return np.array(values).reshape(len(json.loads(attributes["data-rows"])), -1)


def test_windows_of_each_split_are_those_of_the_index(pages):
    rows = table_rows(text_of(pages.index_page), "Windows of each split, and why others are not served")
    found = {(row[0], row[1]): row for row in rows[1:]}
    with open_index(pages.index) as index:
        counts = index.sql(
            "SELECT dataset_id, split, sum(num_windows)::BIGINT AS n FROM windows GROUP BY ALL"
        ).to_pylist()
        dropped = index.sql("SELECT * FROM why_dropped").to_pylist()
    assert {(r["dataset_id"], r["split"]): f"{r['n']:,}" for r in counts} == {k: row[3] for k, row in found.items()}
    reasons = {"target_missing": "target missing", "record_too_short": "record too short"}
    for row in dropped:
        assert f"{row['num_windows']:,} {reasons[row['reason']]}" in found[row["dataset_id"], row["split"]][2]
    assert found["one", "train"][5] == "3 of 4"


def test_the_coverage_map_is_the_observed_share_of_basin_and_year(pages):
    (attributes,) = [m for m in maps_of(text_of(pages.index_page)) if m["aria-label"].startswith("flow: ")]
    with open_index(pages.index) as index:
        text = "SELECT * FROM coverage WHERE dataset_id = 'one' AND variable = 'flow'"
        truth = {(r["basin_id"], str(r["year"])): r["observed_share"] for r in index.sql(text).to_pylist()}
    rows, columns = json.loads(attributes["data-rows"]), json.loads(attributes["data-columns"])
    assert set(truth) == {(row, column) for row in rows for column in columns}
    found = shares_of(attributes)
    for (row, column), share in truth.items():
        assert found[rows.index(row), columns.index(column)] == pytest.approx(share, abs=5e-4)
    assert "Observed everywhere: rain, flow." in text_of(pages.index_page)


def test_a_map_has_its_numbers_as_a_table(pages):
    rows = table_rows(text_of(pages.index_page), "flow: share observed")
    assert rows[0] == ["basin", "2000", "2001", "2002"]
    # 266 of the 366 days of 2000 and 134 of 2001 are lost in the second basin, all of the fourth.
    assert rows[2] == [ATTACK, "27.3 %", "63.3 %", "100 %"]
    assert rows[4] == ["01003500", "0 %", "0 %", "0 %"]


def test_statistics_are_those_of_the_index(pages):
    rows = table_rows(text_of(pages.index_page), "Statistics of flow")
    with open_index(pages.index) as index:
        (truth,) = index.sql(
            "SELECT * FROM stats WHERE scope = 'dataset' AND dataset_id = 'one' AND variable = 'flow'"
        ).to_pylist()
    assert rows[1][:5] == ["one", "mm/day", "flow", "65.9 %", f"{truth['count']:,}"]
    assert rows[1][5] == f"{truth['mean']:,.0f}"


def test_chunks_are_those_of_the_store(pages):
    html = text_of(pages.index_page)
    (one,) = [m for m in maps_of(html) if m["aria-label"].startswith("flow. ") and len(json.loads(m["data-rows"])) == 2]
    # 4 basins by 2, 1,095 steps by 200.
    assert shares_of(one).shape == (2, 6)
    assert shares_of(one).max() == 1
    rows = {row[0]: row for row in table_rows(html, "Stored objects of one, and what they cost")}
    # A window of 30 steps touches 1 + 29 / 200 chunks of 2 basins on average: 2 × 229 values for 30.
    assert rows["flow"][1:4] == ["2 × 200", "12", "–"]
    assert rows["flow"][5:] == ["17.5 kB", "1.6 kB", "15.3 ×"]


def test_smaller_budgets_cost_what_the_loader_forecasts(pages):
    html = text_of(pages.index_page)
    with open_index(pages.index) as index:
        forecast = forecast_reads(index, "train", [1 / 2, 1 / 4, 1 / 8], num_pools=2)
    rows = table_rows(html, "An epoch under smaller budgets")[1:]
    assert [row[2] for row in rows] == [str(budget.num_rounds) for budget in forecast.budgets]
    assert [row[4] for row in rows] == [f"{budget.reads_per_chunk:.3g}" for budget in forecast.budgets]
    assert f"takes {forecast.decoded_nbytes / 1000:.3g} kB of memory decoded" in html


def test_names_from_stores_are_text_and_nothing_else(pages):
    for page in (pages.index_page, pages.run_page, pages.bare_page):
        elements = elements_of(text_of(page))
        scripts = [e for e in elements if e.tag == "script" and e.attributes.get("type") != "application/json"]
        assert len(scripts) == 1
        assert "alert" not in scripts[0].text
        assert {e.tag for e in elements} & {"img", "iframe", "link", "object", "embed", "form", "base"} == set()
        assert [e for e in elements for name in e.attributes if name.startswith("on")] == []
    for page in (pages.index_page, pages.run_page):
        assert any(e.text == ATTACK for e in elements_of(text_of(page)))
    assert any(e.text == UNIT for e in elements_of(text_of(pages.index_page)))


def test_pages_load_nothing(pages):
    for page in (pages.index_page, pages.run_page, pages.bare_page):
        html = text_of(page)
        assert re.findall(r"""(?:https?:|url\(|@import|src=["'](?!x))""", html) == []
        policy = next(e.attributes["content"] for e in elements_of(html) if "http-equiv" in e.attributes)
        assert policy.startswith("default-src 'none'")


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """The kinds of what looks wrong, with where, in two stores that have everything wrong."""
    folder = tmp_path_factory.mktemp("troubled")
    flags = np.zeros((3, 400), dtype=bool)
    flags[:2, 50:60] = True
    bad = write_store(
        folder / "bad.zarr", basins=3, steps=400, variables=("rain", "flow", "snow"), chunks=(3, 100), gaps={200: 5},
        missing={"flow": flags}, missing_as={"flow": -999.0}, flag_attribute=None,
        absent_chunks={"snow": [(0, k) for k in range(4)], "rain": [(0, 1)]}, fill_value=0.0,
    )  # fmt: skip
    good = write_store(folder / "good.zarr", basins=2, steps=400, variables=("rain", "flow"), dataset=1)
    write_attributes(folder / "attributes.zarr", bad.basin_ids, {"area": [5.0, 5.0, 5.0]})
    write_attributes(folder / "others.zarr", good.basin_ids, {"slope": [1.0, 2.0]})
    rain = {"physical": "rain", "unit": "mm/day"}
    datasets = {
        "bad": {
            "timeseries": str(bad.path), "attributes": str(folder / "attributes.zarr"),
            "t_range_train": ["2000-01-01", "2000-12-31"], "t_range_test": ["2000-12-01", "2001-01-31"],
            "variables": {
                "relevant": {"rain": rain, "snow": "snow"}, "target": {"flow": "flow"}, "constant": {"area": "area"},
            },
        },
        "good": {
            "timeseries": str(good.path), "attributes": str(folder / "others.zarr"),
            "t_range_train": ["2000-01-01", "2000-12-31"], "t_range_valid": ["2001-01-01", "2001-01-03"],
            "variables": {
                "relevant": {"rain": {**rain, "unit": "in/day"}, "snow": {"physical": "snow", "required": False}},
                "target": {"flow": "flow"}, "constant": {"area": {"physical": "area", "required": False}},
            },
        },
    }  # fmt: skip
    window = {"hindcast_length": 9, "forecast_length": 5, "warmup_length": 9}
    index = build_here({"datasets": datasets, "window": window}, folder / "index")
    with open_index(index) as opened:
        elements = elements_of(index_page(opened))
    items = [e.text for e in elements if e.tag == "li" and e.attributes.get("class") in ("serious", "mild")]
    return [" ".join(item.split()) for item in items]


@pytest.mark.parametrize(
    "wanted",
    [
        "Splits overlap bad, train and test",
        "Suspicious fill value bad, flow −999 is the smallest value, in 2 of 3 basins",
        "Units differ rain",
        "Absent chunks bad, snow 4 of 4 objects were never written",
        "Zero variance bad, snow Every training value is 0",
        "Zero variance bad, area Every training value is 5",
        "No window good, valid",
        "Variable not there good, snow",
        "Gaps in time bad The time axis jumps in 1 place",
    ],
)
def test_what_looks_wrong_is_named(troubled, wanted):
    assert any(item.startswith(wanted) for item in troubled), troubled


def test_what_is_serious_comes_first(troubled):
    assert troubled.index(next(t for t in troubled if t.startswith("Gaps"))) > troubled.index(
        next(t for t in troubled if t.startswith("Splits"))
    )
