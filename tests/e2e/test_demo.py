"""`headrace demo`, as a user runs it first: its model beats the season, and what it leaves behind is all there."""

import csv
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

LEAST_NSE, LEAST_GAIN = 0.5, 0.3


def run(*arguments, cwd):
    command = [sys.executable, "-m", "headrace", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A working directory in which the demo has run, and how it ended."""
    place = tmp_path_factory.mktemp("demo")
    return place, run("demo", cwd=place)


def test_demo_teaches_a_model_more_than_the_season(demo):
    place, done = demo
    assert done.returncode == 0, done.stderr
    folder = place / "headrace-demo"
    evaluation = folder / "run" / "evaluation" / "test"
    with (evaluation / "metrics.csv").open(newline="") as file:
        nse = {row["dataset_id"]: float(row["nse"]) for row in csv.DictReader(file) if row["scope"] == "dataset"}
    rows = [line.strip("│").split("│") for line in done.stdout.splitlines() if line.startswith("│")]
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
    ]
    assert all(path.exists() for path in left)
    assert "epoch 7/7" in done.stderr

    # The commands it names work as they stand.
    index = folder.name + "/index"
    assert f"headrace inspect {index} gaps" in done.stdout
    inspected = run("inspect", index, "gaps", cwd=place)
    assert inspected.returncode == 0, inspected.stderr
    query = done.stdout.partition(f'headrace sql {index} "')[2].partition('"')[0]
    assert "alpine" in run("sql", index, query, cwd=place).stdout


def test_it_runs_again_in_its_own_folder_with_other_data(demo):
    place, _ = demo
    done = run("demo", "--seed", "1", cwd=place)
    assert done.returncode == 0, done.stderr
