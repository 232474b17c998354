"""`headrace demo`, as a user runs it first: its model beats the season, and what it leaves behind is all there."""

import contextlib
import csv
import json

import numpy as np
import pytest

from command_line import run_headrace
from headrace.demo import run as demo_run
from undrawn import undrawn

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

LEAST_NSE, LEAST_GAIN = 0.5, 0.3


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A working directory in which the demo has run, and how it ended."""
    place = tmp_path_factory.mktemp("demo")
    with contextlib.chdir(place):
        return place, run_headrace("demo")


def test_demo_teaches_a_model_more_than_the_season(demo, monkeypatch):
    place, done = demo
    assert done.code == 0, done.err
    folder = place / "headrace-demo"
    evaluation = folder / "run" / "evaluation" / "test"
    with (evaluation / "metrics.csv").open(newline="") as file:
        nse = {row["dataset_id"]: float(row["nse"]) for row in csv.DictReader(file) if row["scope"] == "dataset"}
    rows = [line.strip("│").split("│") for line in done.out.splitlines() if line.startswith("│")]
    printed = {row[0].strip(): [cell.strip() for cell in row] for row in rows}
    for name in ("alpine", "lowland"):
        climatology = float(printed[name][4])
        assert float(printed[name][3]) == pytest.approx(nse[name], abs=1e-3)
        assert nse[name] >= LEAST_NSE
        assert nse[name] - climatology >= LEAST_GAIN
    left = [
        folder / "demo.yml",
        folder / "index" / "manifest.json",
        folder / "run" / "plots" / "loss.png",
        evaluation / "plots" / "nse_cdf.png",
        evaluation / "plots" / "hydrographs_alpine_streamflow.png",
        evaluation / "plots" / "hydrographs_lowland_streamflow.png",
        evaluation / "predictions.zarr" / "zarr.json",
        folder / "index-report.html",
    ]
    assert all(path.exists() for path in left)
    assert "epoch 5/5" in done.err
    report = (folder / "run-report.html").read_text(encoding="utf-8")
    assert "22 basins between" in report
    assert "Best: " in report

    # The commands it names work as they stand.
    monkeypatch.chdir(place)
    index = folder.name + "/index"
    assert f"headrace inspect {index} gaps" in done.out
    inspected = run_headrace("inspect", index, "gaps")
    assert inspected.code == 0, inspected.err
    query = done.out.partition(f'headrace sql {index} "')[2].partition('"')[0]
    assert "alpine" in run_headrace("sql", index, query).out


def test_it_runs_again_in_its_own_folder_with_other_data(demo, monkeypatch):
    """What an earlier demo left is replaced to the last table; how much a model learns is held to above."""
    place, _ = demo
    folder = place / "headrace-demo"
    before = tables(folder)
    loaded = demo_run.load_config
    shorter = ["train.train_epochs=1", "train.hidden_size=4", "sampling.max_batches_per_epoch=4"]
    monkeypatch.setattr(demo_run, "load_config", lambda path: loaded(path, overrides=shorter))
    monkeypatch.setattr(demo_run, "LEAST_NSE", -np.inf)
    monkeypatch.setattr(demo_run, "LEAST_GAIN", -np.inf)
    monkeypatch.chdir(place)
    with undrawn():
        done = run_headrace("demo", "--seed", "1")
    assert done.code == 0, done.err
    assert "epoch 1/1" in done.err
    assert len((folder / "run" / "metrics.csv").read_text().splitlines()) == 2
    after = tables(folder)
    assert after["basins"]["num_rows"] == before["basins"]["num_rows"]
    assert all(after[name]["sha256"] != before[name]["sha256"] for name in ("stats", "runs"))


def tables(folder):
    return json.loads((folder / "index" / "manifest.json").read_text(encoding="utf-8"))["tables"]
