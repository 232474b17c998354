"""`evaluate` scores exactly the split it names, on the index the run was trained from."""

import csv
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from build_here import build_here
from command_line import CONFIG, run_headrace, write_project
from headrace.commands.results import remarks, score_table
from headrace.schemas.config_io import load_config
from headrace.trainer.comparable import without_mixed_units
from headrace.trainer.metrics import StreamingMetrics
from headrace.trainer.time_axis import TimeAxis

DAILY = dict.fromkeys(("one", "two"), TimeAxis(values=np.arange(3), units="days since 2000-01-01"))


def train(folder):
    sources = ["--index", folder / "index", "--run-dir", folder / "run"]
    outcome = run_headrace("train", *sources, "--max-batches-per-epoch", "1", "--batch-size", "8")
    assert outcome.code == 0, outcome.err
    return folder / "run"


@pytest.fixture
def run(project):
    """A run in a project of its own, for what changes either."""
    return train(project)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that is only scored, beside its stores."""
    folder = tmp_path_factory.mktemp("scored")
    build_here(load_config(write_project(folder)), folder / "index")
    return train(folder)


def table(run, split):
    with (run / "evaluation" / split / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_scores_predictions_and_pictures_of_the_whole_split(trained):
    outcome = run_headrace("evaluate", trained)
    assert outcome.code == 0, outcome.err
    rows = table(trained, "test")
    basins = [row for row in rows if row["scope"] == "basin"]
    # Data set one: 20 days in each of 3 basins; two: 10 days in each of 2.
    assert [row["count"] for row in basins] == ["20", "20", "20", "10", "10"]
    assert [row["dataset_id"] for row in rows if row["scope"] == "dataset"] == ["one", "two"]
    # 2 % of so few days is no day: said in the row, and on the terminal.
    assert all(row["fhv"] == "" and "too_few_high_flows" in row["note"] for row in basins)
    assert "remarks      one streamflow, basins: " in outcome.out
    assert "too_few_high_flows: 3" in outcome.out
    pictures = {path.name for path in (trained / "evaluation" / "test" / "plots").iterdir()}
    assert pictures == {"nse_cdf.png", "hydrographs_one_streamflow.png", "hydrographs_two_streamflow.png"}
    assert "80 windows" in outcome.out
    assert all(len(line) <= 100 for line in outcome.out.splitlines() if line[:1] in "┏┃┡│└")
    assert all(
        word in outcome.out for word in ("data set", "basins", "NSE", "KGE", "RMSE", "bias", "mm/day", "one", "two")
    )


def test_predictions_carry_the_stores_own_values_and_times(trained):
    assert run_headrace("evaluate", trained).code == 0
    with (
        xr.open_zarr(trained / "evaluation" / "test" / "predictions.zarr", group="one", chunks=None) as found,
        xr.open_zarr(trained.parent / "one_timeseries.zarr", chunks=None, consolidated=False) as store,
    ):
        assert (found["time"].values == store["time"].values).all()
        assert list(found["basin"].values) == list(store["basin"].values)
        test = slice("2000-04-10", "2000-04-29")
        observed, original = (d.transpose("basin", "time") for d in (found["streamflow_obs"], store["flow"]))
        np.testing.assert_allclose(observed.sel(time=test), original.sel(time=test), rtol=1e-5)
        assert np.isnan(found["streamflow_sim"].sel(time=slice(None, "2000-04-09"))).all()
        assert np.isfinite(found["streamflow_sim"].sel(time=test)).all()
        assert found["streamflow_sim"].attrs["units"] == "mm/day"


@pytest.mark.parametrize(("other", "together"), [("m^3/s", "–"), ("mm d-1", "mm/day")])
def test_a_score_has_the_unit_of_its_data_set(other, together):
    rows = StreamingMetrics(["one", "two"], [["1"], ["2"]], ["flow"]).rows()
    units = {("one", "flow"): "mm/day", ("two", "flow"): other}
    assert list(score_table(rows, units, "title").columns[-1].cells) == ["mm/day", other, together]
    said = remarks(without_mixed_units([replace(row, count=5) for row in rows], units, DAILY))
    mixed = "all flow, no score in units that differ: different_units: m^3/s, mm/day"
    assert said[2:] == ([mixed] if together == "–" else [])
    row = replace(rows[-1], note="different_units: m, mm; different_time_steps: 3600 s, 86400 s")
    assert "no score in units and time steps that differ: different_units" in remarks([row])[0]


def test_the_train_split_is_scored_whole_whatever_limits_training(trained):
    assert run_headrace("evaluate", trained, "--split", "train", "--batch-size", "64").code == 0
    # 80 days in each basin of data set one, less the 5 that lie too early, less 5 lost in the third.
    assert [row["count"] for row in table(trained, "train")[:3]] == ["75", "75", "70"]


def test_batch_size_and_checkpoint_choose_how_and_what(trained):
    scores = {}
    for name, arguments in {"best": [], "small": ["--batch-size", "3"], "last": ["--checkpoint", "last"]}.items():
        assert run_headrace("evaluate", trained, "--split", "valid", *arguments).code == 0
        rows = table(trained, "valid")
        assert {row["dataset_id"] for row in rows} == {"one", ""}, "the other data set has no validation period"
        scores[name] = [float(row["rmse"]) for row in rows]
    np.testing.assert_allclose(scores["small"], scores["best"], rtol=1e-4)
    assert len(scores["last"]) == len(scores["best"])


def test_several_processes_do_not_evaluate_into_one_folder(trained, monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    outcome = run_headrace("evaluate", trained, "--split", "valid")
    assert outcome.code == 2
    assert "an evaluation is made by one process" in outcome.err


def test_no_run_and_no_checkpoint_are_configuration_errors(project, run):
    assert run_headrace("evaluate", "nowhere").code == 2
    assert "got:      an index" in run_headrace("evaluate", "index").err
    assert run_headrace("evaluate", run, "--split", "tset").code == 2
    (run / "checkpoints" / "best.pt").unlink()
    outcome = run_headrace("evaluate", run)
    assert outcome.code == 2
    assert "best.pt" in outcome.err
    assert run_headrace("evaluate", run, "--checkpoint", "last").code == 0


def test_a_split_without_period_is_said(project):
    arguments = ["--index", "index", "--run-dir", "run", "--train-epochs", "1", "--datasets", "two"]
    assert run_headrace("train", *arguments).code == 0
    outcome = run_headrace("evaluate", "run", "--split", "valid")
    assert outcome.code == 2
    assert "valid has no window" in outcome.err
    assert "set t_range_valid and build the index again" in outcome.err


def test_a_store_changed_since_the_index_is_stale(run, project):
    (project / "one_timeseries.zarr" / "flow" / "1.2").touch()
    outcome = run_headrace("evaluate", run)
    assert outcome.code == 4
    assert "flow/1.2" in outcome.err
    assert not (run / "evaluation" / "test" / "metrics.csv").exists()


def test_an_index_that_would_feed_the_model_differently_is_stale(run, project):
    write_project(project, number_of_two=2)
    build_here(load_config(project / "project.yml"), project / "index")
    outcome = run_headrace("evaluate", run)
    assert outcome.code == 4
    assert "not the one the model was trained from" in outcome.err
    assert "stats" in outcome.err


def test_an_index_of_other_periods_is_refused_by_key(run, project):
    other = project / "other.yml"
    other.write_text(CONFIG.replace('["2000-01-01", "2000-03-20"]', '["2000-01-01", "2000-03-10"]'))
    build_here(load_config(other), project / "index")
    outcome = run_headrace("evaluate", run)
    assert outcome.code == 4
    assert "datasets.one.t_range_train" in outcome.err


def test_a_configuration_edited_since_the_training_is_refused(run):
    config = run / "config.yml"
    config.write_text(config.read_text().replace("method: standard", "method: none"))
    outcome = run_headrace("evaluate", run)
    assert outcome.code == 2
    assert "config.yml" in outcome.err


def test_an_index_that_moved_can_be_named(run, project):
    shutil.move(project / "index", project / "moved")
    outcome = run_headrace("evaluate", run)
    assert outcome.code == 3
    assert run_headrace("evaluate", run, "--index", project / "moved").code == 0


def test_only_basins_of_the_split_are_scored(project):
    some = project / "some.yml"
    chosen = "basins: {train: ['01000500', '01001500'], test: ['01000500', '01002500']}"
    some.write_text(CONFIG.replace("one_attributes.zarr\n", f"one_attributes.zarr\n    {chosen}\n", 1))
    build_here(load_config(some), project / "split")
    arguments = ("--config", some, "--index", "split", "--run-dir", "split_run", "--train-epochs", "1")
    trained = run_headrace("train", *arguments)
    assert trained.code == 0, trained.err
    assert "no validation" in trained.out
    assert "Trained 1 epoch;" in trained.out
    assert run_headrace("evaluate", "split_run").code == 0
    with (project / "split_run" / "evaluation" / "test" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["basin_id"] for row in rows if row["dataset_id"] == "one"] == ["01000500", "01002500", ""]
    assert not any("no_observations" in row["note"] for row in rows)
    shown = run_headrace("inspect", "split", "--format", "csv").out
    basins = {tuple(row[:2]): row[4] for row in csv.reader(shown.splitlines())}
    assert [basins["one", split] for split in ("train", "valid", "test")] == ["2", "0", "2"]
