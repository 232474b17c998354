"""Real sources written in other ways: the index says the same, and what a configuration leaves out shows."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from headrace.indexer import build_index
from headrace.indexer.inventory import take_inventory
from headrace.schemas.config_io import load_config, parse_config
from published_answers import answers, read_config, runs
from published_sources import read_source
from real_projects import make_project

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SOURCES = "airgr_daily", "hydromad_au_daily", "raven_ca_daily", "tossh_gb_daily"
VARIANTS = {
    "format-3": ["--zarr-format", "3", "--chunks", "1,3000"],
    "shards-nan-fill-flags": [
        "--zarr-format", "3", "--chunks", "1,2000", "--shards", "2,6000", "--fill", "nan", "--keep-flags",
    ],
    "format-2-nan-fill-days": ["--chunks", "2,3000", "--fill", "nan", "--time-unit", "D"],
    "float32-flags": ["--dtype", "float32", "--chunks", "3,2500", "--keep-flags"],
}  # fmt: skip
WRITTEN = {  # two sources for each way, two ways for each source; of these, only Raven's has flags
    "format-3": ("airgr_daily", "hydromad_au_daily"),
    "shards-nan-fill-flags": ("raven_ca_daily", "tossh_gb_daily"),
    "format-2-nan-fill-days": ("airgr_daily", "tossh_gb_daily"),
    "float32-flags": ("raven_ca_daily", "hydromad_au_daily"),
}


@pytest.fixture(scope="module")
def usual(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builder of the index of a source's default store, each built once."""
    folder = tmp_path_factory.mktemp("usual")
    configs = make_project(data_root, folder, *SOURCES, "hydrobricks_ch_daily")

    @cache
    def build(name: str) -> Path:
        build_index(load_config(configs / f"{name}.yml"), folder / name)
        return folder / name

    return build


@pytest.mark.parametrize("way", WRITTEN)
def test_tables_do_not_depend_on_how_the_store_is_written(
    usual: Callable[[str], Path], data_root: Path, way: str, tmp_path: Path
) -> None:
    configs = make_project(data_root, tmp_path / "stores", *WRITTEN[way], *VARIANTS[way])
    for name in WRITTEN[way]:
        build_index(load_config(configs / f"{name}.yml"), tmp_path / name)
        compare(tmp_path / name, usual(name), tolerance=1e-6 if way == "float32-flags" else 1e-11)


def compare(mine: Path, theirs: Path, *, tolerance: float) -> None:
    for table in ("runs", "windows", "dropped", "basins", "periods", "segments", "statics"):
        found, expected = (pq.read_table(out / f"{table}.parquet") for out in (mine, theirs))
        assert found == expected, table
    stats = [pq.read_table(out / "stats.parquet") for out in (mine, theirs)]
    for column in ("scope", "dataset_id", "variable", "basin", "count"):
        assert stats[0].column(column) == stats[1].column(column)
    for column in ("mean", "std", "min", "max"):
        found, expected = (table.column(column).to_numpy() for table in stats)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-12)


@pytest.fixture(scope="module")
def flagged(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Folder of the configurations beside a store that holds its flags, and a configuration that names none."""
    configs = make_project(data_root, tmp_path_factory.mktemp("flagged"), "raven_ca_daily", "--keep-flags")
    return configs, without(read_config(configs / "raven_ca_daily.yml"), "missing_values")


def without(config: Any, key: str) -> Any:
    """Return a copy of a configuration in which no variable has a key."""
    config = deepcopy(config)
    for dataset in config["datasets"].values():
        for variables in dataset["variables"].values():
            for settings in variables.values():
                if isinstance(settings, dict):
                    settings.pop(key, None)
    return config


def test_a_usual_flag_that_is_not_configured_shows_in_the_summary(flagged: tuple[Path, Any], tmp_path: Path) -> None:
    configs, config = flagged
    report = build_index(parse_config(config, base=configs), tmp_path)
    said = "matapedia, streamflow: 1 of 1 basins have -9999 as smallest value"
    assert any(warning.startswith(said) for warning in report.warnings)
    low = {v.dataset_id: v.low for v in report.variables if v.variable == "streamflow"}
    assert low["salmon"] == np.float32(-1.2345)  # no usual flag, but flow is never negative: the column min shows it


def test_a_smallest_valid_flow_does_for_an_undeclared_flag(
    flagged: tuple[Path, Any], data_root: Path, tmp_path: Path
) -> None:
    configs, config = flagged
    config = deepcopy(config)
    for dataset in config["datasets"].values():
        dataset["variables"]["target"] = {"streamflow": {"physical": "qobs", "valid_min": 0}}
    build_index(parse_config(config, base=configs), tmp_path)
    source = read_source(data_root / "raven_ca_daily")
    rows = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    for dataset_id in ("salmon", "matapedia"):
        published = answers(config["datasets"][dataset_id], {"raven_ca_daily": source}).targets["streamflow"]
        mine = [r for r in rows if (r["dataset_id"], r["variable"]) == (dataset_id, "streamflow")]
        assert [(r["basin"], r["start"], r["stop"]) for r in mine] == runs(published)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hydrobricks_ch_daily", "units differ: sunshine has unit h in sitter_appenzell, % in sitter_stgallen"),
        ("raven_ca_daily", "units differ: precipitation has unit mm/day (not stated in file) in famine, mm/day in"),
    ],
)
def test_units_that_the_configuration_corrects_would_show_as_a_mismatch(
    usual: Callable[[str], Path], name: str, said: str
) -> None:
    configs = usual("tossh_gb_daily").parent / "configs" / "real"
    config = without(read_config(configs / f"{name}.yml"), "unit")
    assert any(remark.startswith(said) for remark in take_inventory(parse_config(config, base=configs)).remarks)
    assert not take_inventory(load_config(configs / f"{name}.yml")).remarks
