"""Published data sets are trained, built and timed by their ids alone; an unknown id gets a file to start from."""

import json
import re
import shlex
from pathlib import Path

import pytest

from command_line import run_headrace
from headrace.loader import open_index
from headrace.schemas.config_io import load_config, parse_config
from headrace.schemas.errors import ConfigError
from headrace.schemas.hydro_setting import read_hydro_setting
from headrace.schemas.presets import preset_ids, read_preset
from headrace.schemas.yaml_text import read_yaml
from published_store import write_published
from tree import REPOSITORY

PAGE = (REPOSITORY / "docs" / "presets.md").read_text(encoding="utf-8")
LETTERS = {
    "P": "precipitation", "Tmax": "temperature_max", "Tmin": "temperature_min", "T": "temperature_mean",
    "S": "solar_radiation", "PET": "potential_evapotranspiration", "Q": "streamflow",
}  # fmt: skip
SHORT = ("--train-epochs", "1", "--max-batches-per-epoch", "1", "--hidden-size", "4", "--device", "cpu")
SHORT_WINDOWS = ("--set", "window.hindcast_length=9", "--set", "window.stride=50")


@pytest.fixture(scope="session")
def hydro(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of stores as ``~/hydro_setting.yml`` names it, with that file beside them."""
    folder = tmp_path_factory.mktemp("hydro")
    write_published(folder, "camels_us")
    write_published(folder, "camels_ind")
    (folder / "hydro_setting.yml").write_text(f"storage: {{local: {{root: {folder}}}}}", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def setting(hydro, monkeypatch, tmp_path):
    monkeypatch.setenv("HYDRO_SETTING", str(hydro / "hydro_setting.yml"))
    monkeypatch.chdir(tmp_path)


def test_an_id_alone_trains_with_its_preset(hydro):
    outcome = run_headrace("train", "--dataset-id", "camels_us", "--run-dir", "run", *SHORT, *SHORT_WINDOWS)
    assert outcome.code == 0, outcome.err
    config = load_config("run/config.yml")
    dataset = config.datasets["camels_us"]
    assert dataset.timeseries == str(hydro / "camels_us_timeseries.zarr")
    assert dataset.attributes == str(hydro / "camels_us_attributes.zarr")
    assert list(dataset.variables.relevant) == [
        "precipitation", "temperature_max", "temperature_min", "solar_radiation", "potential_evapotranspiration",
    ]  # fmt: skip
    assert config.missing.static_missing == "impute"
    (index,) = Path("indexes").iterdir()
    with open_index(index) as opened:
        units = opened.sql("SELECT variable, unit FROM variables WHERE role <> 'static'").to_pylist()
        splits = opened.sql("SELECT DISTINCT split FROM windows ORDER BY split").to_pylist()
    assert {"variable": "streamflow", "unit": "m^3/s"} in units
    assert [row["split"] for row in splits] == ["test", "train", "valid"]


def test_check_build_index_and_bench_take_ids_in_any_spelling_and_flags_on_top(hydro):
    settings = ("--source", "local", "--set", "datasets.camels_us.variables.constant={}", *SHORT_WINDOWS)
    checked = run_headrace("check", "--dataset-id", "CAMELS-US", *settings)
    assert (checked.code, checked.out.splitlines()[-1]) == (0, "--dataset-id CAMELS-US is right."), checked.err
    built = run_headrace("build-index", "--dataset-id", "CAMELS-US", "--out", "index", *settings)
    assert built.code == 0, built.err
    with open_index(Path("index")) as opened:
        assert opened.sql("SELECT count(*) AS n FROM statics").to_pylist() == [{"n": 0}]
    arguments = ("--dataset-id", "camels_us", "--index", "index", "--steps", "1", "--json", "--source", "local")
    timed = run_headrace("bench", *arguments)
    assert timed.code == 0, timed.err
    assert json.loads(timed.out)["settings"]["datasets"] == ["camels_us"]


def test_several_ids_are_one_joint_configuration(hydro):
    arguments = ("--datasets", "camels_us,camels_ind", "--out", "index", *SHORT_WINDOWS)
    built = run_headrace("build-index", *arguments)
    assert built.code == 0, built.err
    with open_index(Path("index")) as opened:
        rows = opened.sql("SELECT variable, present FROM variables WHERE dataset_id = 'camels_us'").to_pylist()
    assert [row["variable"] for row in rows if not row["present"]] == ["p_mean"]
    assert "area" in {row["variable"] for row in rows}


def test_an_unknown_id_prints_what_its_store_holds_as_a_configuration(hydro, tmp_path, monkeypatch):
    for kind in ("timeseries", "attributes"):
        (tmp_path / f"mine_{kind}.zarr").symlink_to(hydro / f"camels_us_{kind}.zarr")
    (tmp_path / "setting.yml").write_text(f"storage: {{local: {{root: {tmp_path}}}}}", encoding="utf-8")
    monkeypatch.setenv("HYDRO_SETTING", str(tmp_path / "setting.yml"))
    outcome = run_headrace("train", "--dataset-id", "mine")
    assert outcome.code == 2
    assert "printed above" in outcome.err
    skeleton = read_yaml(outcome.out)
    variables = skeleton["datasets"]["mine"]["variables"]
    assert variables["relevant"]["pcp_mm"] == "pcp_mm"
    assert "pcp_mm: pcp_mm  # basin × time, float64, mm/day" in outcome.out
    assert "# huc_02: huc_02  # basin" in outcome.out
    variables["target"]["streamflow"] = variables["relevant"].pop("q_cms_obs")
    config = parse_config(skeleton)
    assert config.datasets["mine"].t_range_train == ("1980-01-01", "2000-12-30")
    assert config.datasets["mine"].timeseries == str(tmp_path / "mine_timeseries.zarr")


@pytest.mark.parametrize(("given", "lacking"), [("relevant", "target"), ("target", "input")])
def test_variables_begun_by_hand_are_not_filled_and_that_is_said_before_a_build(given, lacking):
    Path("part.yml").write_text(f"datasets: {{camels_us: {{variables: {{{given}: [streamflow]}}}}}}", encoding="utf-8")
    outcome = run_headrace("train", "--config", "part.yml")
    assert outcome.code == 2
    assert f"without any {lacking}" in outcome.err
    assert "not filled from a preset" in outcome.err
    assert not Path("indexes").exists()


def test_an_unknown_id_without_store_names_what_looks_like_it():
    outcome = run_headrace("train", "--dataset-id", "camels_uk")
    assert outcome.code == 2
    assert outcome.out == ""
    assert "did you mean camels_us" in outcome.err
    lacking = run_headrace("bench", "--dataset-id", "estreams")
    assert lacking.code == 2
    assert "a data set whose preset has streamflow" in lacking.err


def test_an_id_without_settings_file_says_what_to_write(tmp_path, monkeypatch):
    (tmp_path / "empty.yml").write_text("", encoding="utf-8")
    monkeypatch.setenv("HYDRO_SETTING", str(tmp_path / "empty.yml"))
    outcome = run_headrace("train", "--dataset-id", "camels_us")
    assert outcome.code == 2
    assert "empty.yml, key storage.local.root" in outcome.err
    cloud = run_headrace("train", "--dataset-id", "camels_us", "--source", "cloud")
    assert cloud.code == 2
    assert "empty.yml, key storage.s3.bucket" in cloud.err


def test_neither_file_nor_id_is_a_usage_error():
    for command in ("train", "bench", "build-index"):
        outcome = run_headrace(command, *(["--out", "index"] if command == "build-index" else []))
        assert outcome.code == 2
        assert "--dataset-id ID" in outcome.err


def test_a_store_that_is_not_where_source_says_is_refused(hydro):
    Path("mine.yml").write_text(
        f"datasets: {{camels_us: {{timeseries: {hydro}/camels_us_timeseries.zarr}}}}", encoding="utf-8"
    )
    for command in (["train", "--config"], ["bench", "--dataset-config"], ["build-index", "--out", "index"]):
        outcome = run_headrace(*command, "mine.yml", "--source", "cloud")
        assert outcome.code == 2
        assert "datasets.camels_us.timeseries" in outcome.err
        assert "--source" in outcome.err


def test_the_table_of_the_page_is_what_the_presets_say():
    rows = re.findall(r"^\| `(\w+)` \| `(.*)` \| (.*) to (.*) \| (\w+|–) \| (.*) \| (.*) \|$", PAGE, flags=re.MULTILINE)
    assert [row[0] for row in rows] == list(preset_ids())
    for dataset_id, store, first, last, step, names, num_statics in rows:
        preset = read_preset(dataset_id)
        assert (store, first, last) == (preset.timeseries, preset.first[:10], preset.last[:10])
        assert {"day": 86400, "hour": 3600, "–": None}[step] == preset.step_seconds
        try:
            variables = parse_config({"datasets": {dataset_id: None}}).datasets[dataset_id].variables
        except ConfigError:
            assert (names, num_statics) == ("–", "–")
            continue
        assert [LETTERS[name] for name in names.split(", ")] == [*variables.relevant, *variables.target]
        assert int(num_statics) == len(variables.constant)


def test_the_commands_and_files_of_the_page_work(hydro):
    commands = [shlex.split(line)[1:] for line in re.findall(r"^    (headrace .*)$", PAGE, flags=re.MULTILINE)]
    assert [command[0] for command in commands] == ["check", "build-index", "bench", "train", "train", "train"]
    for command in commands[:5]:
        more = (*SHORT, *SHORT_WINDOWS) if command[0] == "train" else ()
        outcome = run_headrace(*command, *more)
        assert outcome.code == 0, (command, outcome.err)
    assert run_headrace(*commands[5][:3]).code == 2
    settings, configuration = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    Path("hydro_setting.yml").write_text(settings, encoding="utf-8")
    assert read_hydro_setting(Path("hydro_setting.yml")).store_folder("cloud") == "s3://hydro-data/zarr"
    config = parse_config(read_yaml(configuration))
    assert config.datasets["camels_us"].variables.relevant["dayl"].physical == "dayl"
    assert config.datasets["camels_ind"].timeseries == str(hydro / "camels_ind_timeseries.zarr")
