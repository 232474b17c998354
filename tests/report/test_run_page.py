"""The page about a run says what its folder holds, and what to do where something is missing."""

import json
import shutil

import numpy as np
import pytest
import zarr

from headrace.commands.report_pages import report_of
from headrace.report.evaluation_section import split_section
from headrace.report.run_results import Evaluated
from headrace.trainer.run_folder import read_csv
from html_text import elements_of, table_rows
from report_folders import ATTACK, BASINS, write_evaluation


def text_of(page):
    return page.read_text(encoding="utf-8")


def figures_of(html):
    """Title → description of every figure."""
    return {
        e.attributes["aria-label"].split(". ")[0]: e.attributes["aria-label"]
        for e in elements_of(html)
        if e.tag == "svg" and e.attributes.get("role") == "img"
    }


def test_curves_hold_every_epoch(pages):
    html = text_of(pages.run_page)
    assert table_rows(html, "Loss") == [
        ["epoch", "training", "validation"],
        *([str(e + 1), f"{1 / (e + 1):.4g}", f"{1.2 / (e + 1):.4g}"] for e in range(4)),
    ]
    assert table_rows(html, "Time of a batch")[1] == ["1", "2", "30"]
    assert table_rows(html, "Throughput")[4] == ["4", "5003"]
    assert "waited for data in 6.2 % of its time: the model is the bottleneck" in html


def test_scores_are_those_of_the_evaluation(pages):
    html = text_of(pages.run_page)
    medians = table_rows(html, "Medians over basins")
    assert medians[1][:4] == ["one", "flow", "900", "0.6"]
    assert "RMSE, mm/day" in medians[0]
    rows = table_rows(html, "Scores of each basin")
    # Worst first: without observations, then by NSE.
    assert [row[0] for row in rows[1:]] == [BASINS[3], BASINS[2], ATTACK, BASINS[0]]
    assert rows[1][-1] == "no observations"
    assert "NSE is undefined for 1 of 4 series" in html
    assert table_rows(html, "Distribution of NSE")[1] == [
        "one",
        "3",
        "−2",
        "−1.74",
        "−0.7",
        "0.6",
        "0.75",
        "0.87",
        "0.9",
    ]


def test_scores_of_data_sets_in_different_units_have_each_its_own(tmp_path):
    out = tmp_path / "test"
    write_evaluation(out)
    rows = read_csv(out / "metrics.csv")
    other = [{**row, "dataset_id": "two"} for row in rows if row["scope"] != "all"]
    note = "no_peaks: 1; different_units: L/s, mm/day"
    rows = [row | {"rmse": "", "note": note} if row["scope"] == "all" else row for row in [*other, *rows]]
    found = Evaluated(
        split="test", folder=out, basins=[row for row in rows if row["scope"] == "basin"],
        medians=[row for row in rows if row["scope"] != "basin"],
        units={("one", "flow"): "mm/day", ("two", "flow"): "L/s"},
    )  # fmt: skip
    section = split_section(found, {})
    assert [row[:3] for row in section.medians.rows] == [
        ("two", "flow", "L/s"), ("one", "flow", "mm/day"), ("all", "flow", "–")
    ]  # fmt: skip
    assert section.mixed == "Of all data sets together there is no score in mixed units (different units: L/s, mm/day)."
    assert {row[1:3] for row in section.basins.table.rows} == {("one", "mm/day"), ("two", "L/s")}


@pytest.mark.parametrize(("count", "of_all", "shown"), [("0", "mm/day", None), ("9", "–", "–")])
def test_an_unknown_unit_counts_where_something_was_observed(tmp_path, count, of_all, shown):
    write_evaluation(tmp_path / "test")
    rows = read_csv(tmp_path / "test" / "metrics.csv")
    rows = [{**row, "dataset_id": "two", "count": count} for row in rows if row["scope"] != "all"] + rows
    found = Evaluated(
        split="test", folder=tmp_path, basins=[row for row in rows if row["scope"] == "basin"],
        medians=[row for row in rows if row["scope"] != "basin"], units={("one", "flow"): "mm/day"},
    )  # fmt: skip
    medians = split_section(found, {}).medians
    if shown is None:
        assert "unit" not in medians.header
        assert f"RMSE, {of_all}" in medians.header
    else:
        assert [row[2] for row in medians.rows] == [shown, "mm/day", of_all]


def test_basins_are_put_where_the_attributes_store_says(pages):
    description = figures_of(text_of(pages.run_page))["NSE by place"]
    assert "4 basins between 44° N – 47° N and 3° W – 2° E" in description
    assert "0.75 or more: 1; 0.5 to 0.75: 1; 0.25 to 0.5: 0; 0 to 0.25: 0; below 0: 1" in description


def test_hydrographs_are_those_of_the_predictions(pages):
    figures = figures_of(text_of(pages.run_page))
    store = zarr.open_group(pages.run / "evaluation" / "test" / "predictions.zarr", mode="r")
    simulated = np.asarray(store["one/flow_sim"][0])
    low, high = np.nanmin(simulated), np.nanmax(simulated)
    best = figures[f"Best: {BASINS[0]}, NSE 0.9"]
    assert "From 2001-12-31 to 2002-12-30. Observed on 345 of 365 steps" in best
    assert f"simulated {low:.3g} to {high:.3g}." in best
    assert f"Median: {ATTACK}, NSE 0.6" in figures
    assert f"Worst: {BASINS[2]}, NSE −2" in figures


def test_links_lead_to_files(pages):
    links = [e.attributes["href"] for e in elements_of(text_of(pages.run_page)) if e.tag == "a"]
    files = [link for link in links if link.startswith("./")]
    assert {link.rsplit("/", 1)[1] for link in files} == {"config.yml", "metrics.csv", "predictions.zarr"}
    assert all((pages.run_page.parent / link).exists() for link in files)


def test_a_run_without_evaluation_says_how_to_make_one(pages):
    html = text_of(pages.bare_page)
    assert f"headrace evaluate {pages.bare_run} --split test" in html
    assert table_rows(html, "Loss")
    assert "NSE by place" not in html


@pytest.fixture
def copy(pages, tmp_path):
    """A run to take things away from."""
    return shutil.copytree(pages.run, tmp_path / "copy")


def page_of(run, tmp_path, **options):
    report_of(run, tmp_path / "page.html", **options)
    return text_of(tmp_path / "page.html")


def test_without_its_index_there_is_no_map_and_the_page_says_why(copy, tmp_path):
    record = json.loads((copy / "index.json").read_text())
    (copy / "index.json").write_text(json.dumps({**record, "path": str(tmp_path / "gone")}))
    html = page_of(copy, tmp_path)
    assert "No map" in html
    assert "Index not found; --index says where it lies now." in html
    assert "Distribution of NSE" in html


def test_an_index_that_has_moved_is_named(copy, pages, tmp_path):
    (copy / "index.json").write_text(json.dumps({**json.loads((copy / "index.json").read_text()), "path": "gone"}))
    assert "NSE by place" in figures_of(page_of(copy, tmp_path, index_folder=pages.index))


def test_without_predictions_there_are_no_hydrographs(copy, tmp_path):
    shutil.rmtree(copy / "evaluation" / "test" / "predictions.zarr")
    html = page_of(copy, tmp_path)
    assert "no hydrographs" in html
    assert "NSE by place" in html


def test_a_run_that_has_only_begun_has_a_page(copy, tmp_path):
    for name in ("metrics.csv", "config.yml"):
        (copy / name).unlink()
    shutil.rmtree(copy / "evaluation")
    html = page_of(copy, tmp_path)
    assert "No epoch is finished yet" in html
    assert "has no readable" in html


def test_scores_that_are_all_undefined_are_said_to_be(copy, tmp_path):
    metrics = copy / "evaluation" / "test" / "metrics.csv"
    lines = metrics.read_text().splitlines()
    columns = lines[0].split(",")
    rows = [dict(zip(columns, line.split(","), strict=True)) | {"nse": ""} for line in lines[1:]]
    metrics.write_text("\n".join([lines[0], *(",".join(row.values()) for row in rows)]) + "\n")
    assert "NSE is defined for no basin" in page_of(copy, tmp_path)
