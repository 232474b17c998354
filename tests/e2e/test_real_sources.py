"""Every real source through its configuration in configs/real, against a calculation made from the published CSV files.

The oracle is ``published_sources`` (CSV text to NumPy) and ``published_answers`` (runs, windows, drops, statistics);
neither calls Headrace nor reads a Zarr store.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from headrace.indexer import BuildReport, build_index
from headrace.schemas.config_io import load_config
from published_answers import (
    SPLITS,
    Answers,
    answers,
    read_config,
    runs,
    shape_of,
    source_name,
    training_values,
    windows,
)
from published_sources import Source, read_source
from real_projects import CONFIGS, make_project
from tree import REPOSITORY

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PAGE = REPOSITORY / "docs" / "real-sources.md"
SOURCES = sorted(path.stem for path in CONFIGS.glob("*.yml"))
TARGET_POLICIES = "keep", "drop_any_nan", "drop_all_nan"
INPUT_POLICIES = "fill", "fill_and_mask", "drop"

WITHOUT_INPUTS = {
    "brompton_15min", "lfstat_flow_daily", "tossh_gb_15min", "tossh_gb_hourly", "transfr_blavet_hourly",
    "usgs_nj_flow_daily", "wsc_flow_daily",
}  # fmt: skip
WITHOUT_TARGET = {"era5_lsj_hourly"}
BARE_WHEN_INPUTS_DROP = {  # (data set, split) of which nothing is left under missing_policy: drop
    "airgr_hourly": {("airgr_hourly", split) for split in SPLITS},  # temperature is missing throughout
    "camels_us_daily": {("camels_us_sacsma", "train"), ("camels_us_sacsma", "test")},  # NLDAS and Maurer likewise
}
NO_SPREAD = r"every training value is .* \(standard deviation 0\); it is scaled by 1"
SAYS = {  # patterns of the warnings of a build; every other source builds without any
    "airgr_hourly": [
        f"area: {NO_SPREAD}",
        f"elevation: {NO_SPREAD}",
        "temperature: no observed value in any training period; it is scaled by 1",
    ],
    "camels_us_daily": [
        f"snow_water_equivalent: {NO_SPREAD}",
        *(
            f"{name}: no observed training value in camels_us_sacsma"
            for name in (
                "precipitation_maurer", "precipitation_nldas", "temperature_maurer", "temperature_max_maurer",
                "temperature_min_maurer", "temperature_nldas",
            )
        ),
    ],
    "tossh_gb_daily": [
        "tossh_gb, input precipitation: 1 of 2 chunks are not stored and the fill value is 0; they count as 0 .*",
    ],
    "tuwmodel_vils_daily": [f"area_{zone}: {NO_SPREAD}" for zone in range(1, 7)],
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Built:
    """One source, indexed as its configuration says, and what is published about it."""

    name: str
    path: Path
    config: Mapping[str, Any]
    out: Path
    report: BuildReport
    answers: dict[str, Answers]

    def table(self, name: str, **where: object) -> list[dict[str, Any]]:
        """Return the rows of a table whose columns equal the given values."""
        rows = pq.read_table(self.out / f"{name}.parquet").to_pylist()
        return [row for row in rows if all(row[column] == value for column, value in where.items())]


@pytest.fixture(scope="module")
def configs(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the configurations, with the default stores of all sources where they point to."""
    return make_project(data_root, tmp_path_factory.mktemp("sources"), "--all")


@pytest.fixture(scope="module")
def published(data_root: Path) -> Callable[[str], Source]:
    """Reader of sources, each read once."""
    known: dict[str, Source] = {}

    def read(name: str) -> Source:
        if name not in known:
            known[name] = read_source(data_root / name)
        return known[name]

    return read


@pytest.fixture(scope="module", params=SOURCES)
def built(request: pytest.FixtureRequest, configs: Path, published: Callable[[str], Source]) -> Iterator[Built]:
    path = configs / f"{request.param}.yml"
    config = read_config(path)
    uris = [d[key] for d in config["datasets"].values() for key in ("timeseries", "attributes") if key in d]
    sources = {name: published(name) for name in map(source_name, uris)}
    out = configs.parent.parent / "indexes" / request.param
    yield Built(
        name=request.param,
        path=path,
        config=config,
        out=out,
        report=build_index(load_config(path), out),
        answers={name: answers(dataset, sources) for name, dataset in config["datasets"].items()},
    )
    shutil.rmtree(out)


def test_every_source_has_a_configuration(data_root: Path) -> None:
    assert [path.parent.name for path in sorted(data_root.glob("*/meta.json"))] == SOURCES


def test_the_summary_names_what_is_odd(built: Built) -> None:
    patterns = SAYS.get(built.name, [])
    matched = [[re.fullmatch(p, warning) is not None for p in patterns] for warning in built.report.warnings]
    assert len(matched) == len(patterns), built.report.warnings
    assert all(sum(row) == 1 for row in matched), built.report.warnings


def test_basins_axis_and_periods_are_those_of_the_files(built: Built, published: Callable[[str], Source]) -> None:
    for name, found in built.answers.items():
        source = published(source_name(built.config["datasets"][name]["timeseries"]))
        (row,) = built.table("datasets", dataset_id=name)
        assert (row["num_steps"], row["time_start"]) == (source.num_steps, source.first.isoformat())
        assert row["step_seconds"] == source.step.total_seconds()
        assert len(built.table("segments", dataset_id=name)) == 1
        assert [r["basin_id"] for r in built.table("basins", dataset_id=name)] == found.basins
        periods = {r["split"]: (r["start"], r["stop"]) for r in built.table("periods", dataset_id=name)}
        assert periods == found.periods


def test_runs_are_the_unbroken_stretches_of_published_values(built: Built) -> None:
    table = pq.read_table(built.out / "runs.parquet")
    columns = [table.column(name).to_pylist() for name in ("dataset_id", "variable", "basin", "start", "stop")]
    expected = [
        (dataset_id, name, *run)
        for dataset_id, found in sorted(built.answers.items())
        for name in sorted(found.series)
        for run in runs(found.series[name])
    ]
    assert list(zip(*columns, strict=True)) == expected


@pytest.mark.parametrize("input_policy", INPUT_POLICIES)
@pytest.mark.parametrize("target_policy", TARGET_POLICIES)
def test_windows_and_drops_are_those_of_the_published_values(
    built: Built, target_policy: str, input_policy: str
) -> None:
    policies = [f"missing.target_nan_policy={target_policy}", f"missing.missing_policy={input_policy}"]
    report = build_index(load_config(built.path, policies), built.out)
    assert report.scan.units_scanned == 0
    table = pq.read_table(built.out / "windows.parquet").to_pylist()
    drops = built.table("dropped")
    bare = set()
    for dataset_id, found in built.answers.items():
        for split in found.periods:
            expected = windows(
                found, split, shape_of(built.config), target_policy=target_policy, input_policy=input_policy
            )
            rows = [r for r in table if (r["dataset_id"], r["split"]) == (dataset_id, split)]
            stride = shape_of(built.config).stride
            for basin in range(len(found.basins)):
                pieces = [np.arange(r["start"], r["stop"], stride) for r in rows if r["basin"] == basin]
                starts = np.concatenate([np.zeros(0, np.int64), *pieces])
                np.testing.assert_array_equal(starts, expected.starts.get(basin, []))
            assert sum(r["num_windows"] for r in rows) == sum(map(len, expected.starts.values()))
            dropped = {
                (r["basin"], r["reason"]): r["num_windows"]
                for r in drops
                if (r["dataset_id"], r["split"]) == (dataset_id, split)
            }
            assert dropped == expected.dropped
            if not rows:
                bare.add((dataset_id, split))
            if built.name in WITHOUT_INPUTS:
                assert not any(reason == "input_missing" for _, reason in dropped)
            if built.name in WITHOUT_TARGET:
                assert not any(reason == "target_missing" for _, reason in dropped)
    assert bare == (BARE_WHEN_INPUTS_DROP.get(built.name, set()) if input_policy == "drop" else set())


def test_the_lists_of_sources_without_inputs_or_target_are_right(built: Built) -> None:
    assert (built.name in WITHOUT_INPUTS) == (not any(found.inputs for found in built.answers.values()))
    assert (built.name in WITHOUT_TARGET) == (not any(found.targets for found in built.answers.values()))


def test_statistics_are_those_of_the_published_training_values(built: Built) -> None:
    table = {(r["scope"], r["dataset_id"], r["variable"], r["basin"]): r for r in built.table("stats")}
    pooled: dict[str, list[np.ndarray]] = {}
    for dataset_id, found in built.answers.items():
        for name in found.series:
            by_basin = training_values(found, name)
            for basin, values in by_basin.items():
                check_stats(table.pop(("basin", dataset_id, name, basin)), values)
            whole = np.concatenate(list(by_basin.values()))
            check_stats(table.pop(("dataset", dataset_id, name, -1)), whole)
            pooled.setdefault(name, []).append(whole)
        for name, static in found.statics.items():
            rows = built.table("statics", dataset_id=dataset_id, variable=name)
            np.testing.assert_array_equal([r["value"] for r in rows], static)
            chosen = static[found.splits["train"]].astype(np.float64)
            check_stats(table.pop(("dataset", dataset_id, name, -1)), chosen)
            pooled.setdefault(name, []).append(chosen)
    for name, parts in pooled.items():
        check_stats(table.pop(("global", "", name, -1)), np.concatenate(parts))
    assert not table


def check_stats(row: Mapping[str, float], values: np.ndarray) -> None:
    """Compare one row of the table with a two-pass calculation."""
    assert row["count"] == values.size
    if not values.size:
        assert np.isnan(row["min"])
        assert np.isnan(row["max"])
        return
    assert row["min"] == values.min()
    assert row["max"] == values.max()
    np.testing.assert_allclose(row["mean"], values.mean(), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(row["std"], values.std(), rtol=1e-10, atol=1e-12)


def rows_of_page(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines]


def test_the_page_about_real_sources_counts_windows_as_the_index_does(built: Built) -> None:
    written = {row[1]: row[2:] for row in rows_of_page("Windows") if row[0] == built.name}
    expected = {}
    for dataset_id, found in built.answers.items():
        counts = {str(s.split): f"{s.num_windows:,}" for s in built.report.splits if s.dataset_id == dataset_id}
        (row,) = built.table("datasets", dataset_id=dataset_id)
        steps = f"{row['num_steps']:,}"
        expected[dataset_id] = [str(len(found.basins)), steps, *(counts.get(split, "–") for split in SPLITS)]
    assert written == expected


@pytest.mark.parametrize("input_policy", ["fill", "drop"])
def test_the_page_about_real_sources_gives_every_policy_its_windows(built: Built, input_policy: str) -> None:
    written = {row[0]: row[1:] for row in rows_of_page("Training windows by policy")}
    first = 0 if input_policy == "fill" else len(TARGET_POLICIES)
    for dataset_id, found in built.answers.items():
        for column, policy in enumerate(TARGET_POLICIES, start=first):
            expected = windows(found, "train", shape_of(built.config), target_policy=policy, input_policy=input_policy)
            assert written[dataset_id][column] == f"{sum(map(len, expected.starts.values())):,}"


def test_flow_by_area_is_the_depth_that_is_published_as_well(published: Callable[[str], Source]) -> None:
    source = published("camels_fr_daily")
    dataset = read_config(CONFIGS / "camels_fr_daily.yml")["datasets"]["camels_fr"]
    flow = answers(dataset, {"camels_fr_daily": source}).targets["streamflow"]
    np.testing.assert_allclose(flow, source.values["Qmmd"], rtol=1e-6, atol=0.0005)  # Qmmd has three decimals
