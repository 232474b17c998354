"""The recipe of docs/real-data.md, cut down, against a calculation made straight from the published CSV files."""

import csv
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headrace
from command_line import run_headrace
from published import Records, read_records
from tree import REPOSITORY

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LENGTH = 180
FRENCH = {"precipitation": "Ptot", "potential_evapotranspiration": "Evap", "temperature": "Temp", "streamflow": "Qmmd"}
BRITISH = {"precipitation": "precipitation", "potential_evapotranspiration": "peti", "streamflow": "discharge_spec"}
PERIODS = {
    "camels_fr": {"train": ("2000-01-01", "2010-12-31"), "test": ("2011-01-01", "2018-12-31")},
    "camels_gb": {"train": ("1990-01-01", "2004-12-31"), "test": ("2005-01-01", "2015-09-30")},
}


@dataclass(frozen=True, kw_only=True)
class Project:
    """Stores, configuration and index of the recipe, and the published values beside them."""

    folder: Path
    config: Path
    index: Path
    records: dict[str, Records]
    columns: dict[str, dict[str, str]]

    def series(self, dataset_id: str, variable: str) -> np.ndarray:
        """Return published values [basins, steps] in single precision, as the model sees them."""
        return self.records[dataset_id].values[self.columns[dataset_id][variable]].astype(np.float32)

    def steps(self, dataset_id: str, split: str) -> tuple[int, int]:
        """Return the steps [first, last] of a period."""
        first, last = PERIODS[dataset_id][split]
        return self.records[dataset_id].step(first), self.records[dataset_id].step(last)


def run(*arguments: str | Path) -> None:
    """Run a command that must succeed."""
    done = run_headrace(*arguments)
    assert done.code == 0, done.err


@pytest.fixture(scope="module")
def project(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("real")
    sources = "camels_fr_daily", "camels_gb_severn_daily"
    subprocess.run(
        [sys.executable, str(data_root / "to_zarr.py"), *sources, "--out", str(folder / "stores")],
        check=True,
        capture_output=True,
    )
    text = (REPOSITORY / "configs" / "camels_fr_gb.yml").read_text(encoding="utf-8")
    config = folder / "config.yml"
    config.write_text(text.replace("../real/stores", "stores"), encoding="utf-8")
    run("build-index", config, "--out", folder / "index")
    return Project(
        folder=folder,
        config=config,
        index=folder / "index",
        records={
            "camels_fr": read_records(data_root / sources[0], "Date", list(FRENCH.values())),
            "camels_gb": read_records(data_root / sources[1], "DatesR", list(BRITISH.values())),
        },
        columns={"camels_fr": FRENCH, "camels_gb": BRITISH},
    )


def starts_by_hand(project: Project, dataset_id: str, split: str) -> list[set[int]]:
    """List the starts of every basin by looking at one target day after the other."""
    flow = project.series(dataset_id, "streamflow")
    first, last = project.steps(dataset_id, split)
    found: list[set[int]] = [set() for _ in flow]
    for day in range(first, last + 1):
        start = day - (LENGTH - 1)
        if start < 0:
            continue
        for basin in range(flow.shape[0]):
            if split == "test" or not np.isnan(flow[basin, day]):
                found[basin].add(start)
    return found


@pytest.mark.parametrize("dataset_id", ["camels_fr", "camels_gb"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_windows_are_those_whose_target_day_is_published(project: Project, dataset_id: str, split: str) -> None:
    expected = starts_by_hand(project, dataset_id, split)
    found: dict[str, set[int]] = {basin: set() for basin in project.records[dataset_id].basins}
    with headrace.open_index(project.index) as index:
        for row in index.windows(split).to_pylist():
            if row["dataset_id"] == dataset_id:
                found[row["basin_id"]].update(range(row["start"], row["stop"], row["stride"]))
    assert list(found.values()) == expected


def test_dropped_windows_are_the_days_without_streamflow(project: Project) -> None:
    with headrace.open_index(project.index) as index:
        rows = index.sql("select dataset_id, split, reason, sum(num_windows)::bigint as n from dropped group by all")
    found = {(r["dataset_id"], r["split"], r["reason"]): r["n"] for r in rows.to_pylist() if r["n"]}
    expected = {}
    for dataset_id in PERIODS:
        first, last = project.steps(dataset_id, "train")
        missing = int(np.isnan(project.series(dataset_id, "streamflow")[:, first : last + 1]).sum())
        if missing:
            expected[dataset_id, "train", "target_missing"] = missing
    assert expected
    assert found == expected


def test_statistics_are_those_of_the_training_period(project: Project) -> None:
    with headrace.open_index(project.index) as index:
        rows = index.stats().to_pylist()
    stats = {(r["scope"], r["dataset_id"], r["variable"], r["basin"]): r for r in rows}
    for variable in FRENCH:
        pooled = []
        for dataset_id, columns in project.columns.items():
            if variable not in columns:
                continue
            first, last = project.steps(dataset_id, "train")
            values = project.series(dataset_id, variable)[:, first : last + 1].astype(np.float64)
            pooled.append(values[~np.isnan(values)])
            check_stats(stats["dataset", dataset_id, variable, -1], pooled[-1])
            for basin, line in enumerate(values):
                check_stats(stats["basin", dataset_id, variable, basin], line[~np.isnan(line)])
        check_stats(stats["global", "", variable, -1], np.concatenate(pooled))


def check_stats(row: dict[str, float], values: np.ndarray) -> None:
    """Compare one row of the table with a two-pass calculation."""
    assert row["count"] == values.size
    assert row["min"] == values.min()
    assert row["max"] == values.max()
    np.testing.assert_allclose(row["mean"], values.mean(), rtol=1e-12)
    np.testing.assert_allclose(row["std"], values.std(), rtol=1e-11)


def test_batches_hold_the_published_values(project: Project) -> None:
    with (
        headrace.open_index(project.index) as index,
        headrace.WindowLoader(index, "train", batch_size=997, memory_budget="1MiB") as loader,
    ):
        assert not loader.resident
        stats = {r["variable"]: r for r in index.stats().to_pylist() if r["scope"] == "global"}
        served = 0
        for batch in loader:
            flow = loader.denormalize(batch.y, batch).numpy()
            for i in range(0, len(batch), 50):
                dataset_id = loader.dataset_ids[batch.dataset[i]]
                basin, start = int(batch.basin[i]), int(batch.start[i])
                for column, variable in enumerate(loader.x_names):
                    got = batch.x[i, :, column].numpy()
                    if variable not in project.columns[dataset_id]:
                        assert not got.any()
                        continue
                    values = project.series(dataset_id, variable)[basin, start : start + LENGTH].astype(np.float64)
                    expected = (values - stats[variable]["mean"]) / stats[variable]["std"]
                    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-6)
                target = project.series(dataset_id, "streamflow")[basin, start + LENGTH - 1]
                np.testing.assert_allclose(flow[i, 0, 0], target, rtol=1e-5, atol=1e-6)
            served += len(batch)
        assert served == loader.num_windows


def test_a_short_training_learns_and_is_scored_as_published(project: Project) -> None:
    run_dir = project.folder / "run"
    run(
        "train", "--config", project.config, "--index", project.index, "--run-dir", run_dir, "--train-epochs", "2",
        "--hidden-size", "8", "--max-batches-per-epoch", "40", "--set", "train.learning_rate=0.02",
    )  # fmt: skip
    run("evaluate", run_dir, "--split", "test")
    evaluation = run_dir / "evaluation" / "test"
    with (evaluation / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = {(r["scope"], r["dataset_id"], r["basin_id"]): r for r in csv.DictReader(file)}
    for dataset_id in PERIODS:
        simulated = xr.open_zarr(evaluation / "predictions.zarr", group=dataset_id)["streamflow_sim"]
        first, last = project.steps(dataset_id, "test")
        scores = []
        for line, basin in enumerate(project.records[dataset_id].basins):
            sim = simulated.sel(basin=basin).values[first : last + 1].astype(np.float64)
            obs = project.series(dataset_id, "streamflow")[line, first : last + 1].astype(np.float64)
            assert not np.isnan(sim).any()
            seen = ~np.isnan(obs)
            error = ((sim - obs)[seen] ** 2).sum() / ((obs[seen] - obs[seen].mean()) ** 2).sum()
            scores.append(1 - error)
            row = rows["basin", dataset_id, basin]
            assert int(row["count"]) == seen.sum()
            np.testing.assert_allclose(float(row["nse"]), scores[-1], rtol=1e-4, atol=1e-5)
        # 80 batches of the 1,890 of the full recipe are enough to beat the mean flow by far.
        assert np.median(scores) > 0.4
        np.testing.assert_allclose(float(rows["dataset", dataset_id, ""]["nse"]), np.median(scores), rtol=1e-4)
