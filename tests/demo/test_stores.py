"""The demo's stores are what its configuration says, gaps and all, and worth learning from."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

from headrace.demo.landscape import ALPINE, LOWLAND, Record, Region, simulate
from headrace.demo.stores import FLAG, write_demo_stores
from headrace.demo.weather import day_of_year
from headrace.schemas.config import Config
from headrace.schemas.config_io import load_config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo_stores(tmp_path_factory.mktemp("demo") / "data").parent


@pytest.fixture(scope="module")
def config(folder: Path) -> Config:
    return load_config(folder / "demo.yml")


@pytest.fixture(scope="module")
def alpine() -> Record:
    return simulate(ALPINE, 0)


@pytest.fixture(scope="module")
def lowland() -> Record:
    return simulate(LOWLAND, 0)


def read(folder: Path, store: str, name: str) -> NDArray[Any]:
    return np.asarray(zarr.open_array(str(folder / f"{store}.zarr"), path=name, mode="r")[...])


def digest(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_same_seed_writes_the_same_bytes_and_another_seed_other_data(folder: Path, tmp_path: Path) -> None:
    write_demo_stores(tmp_path / "again")
    write_demo_stores(tmp_path / "other", seed=1)
    assert digest(tmp_path / "again") == digest(folder)
    other = read(tmp_path / "other", "alpine_timeseries", "pcp_mm")
    assert not np.array_equal(other, read(folder, "alpine_timeseries", "pcp_mm"))


def test_writing_twice_into_a_folder_replaces_what_was_there(tmp_path: Path) -> None:
    write_demo_stores(tmp_path, seed=1)
    write_demo_stores(tmp_path)
    first = digest(tmp_path)
    write_demo_stores(tmp_path)
    assert digest(tmp_path) == first


def test_configuration_names_arrays_that_exist(config: Config, folder: Path) -> None:
    for name, dataset in config.datasets.items():
        assert Path(dataset.timeseries) == folder / f"{name}_timeseries.zarr"
        group = zarr.open_group(dataset.timeseries, mode="r")
        variables = [*config.variables_of(name, "input").values(), *config.variables_of(name, "target").values()]
        assert {variable.physical for variable in variables} <= set(group.array_keys())
        statics = zarr.open_group(str(dataset.attributes), mode="r")
        assert {v.physical for v in config.variables_of(name, "static").values()} <= set(statics.array_keys())


def test_both_data_sets_give_the_same_variables(config: Config) -> None:
    for role in ("input", "target", "static"):
        assert set(config.variables_of("alpine", role)) == set(config.variables_of("lowland", role))


@pytest.mark.parametrize(("dataset", "region"), [("alpine", ALPINE), ("lowland", LOWLAND)])
def test_periods_are_apart_and_fill_the_record(config: Config, dataset: str, region: Region) -> None:
    source = config.datasets[dataset]
    periods = [source.t_range_train, source.t_range_valid, source.t_range_test]
    dates = [np.datetime64(day) for period in periods if period for day in period]
    assert dates[0] == np.datetime64(region.first_day)
    assert dates[-1] == np.datetime64(region.last_day)
    assert [dates[2] - dates[1], dates[4] - dates[3]] == [np.timedelta64(1, "D")] * 2


def test_layouts_differ_in_format_order_time_and_chunks(folder: Path) -> None:
    flow = zarr.open_array(str(folder / "alpine_timeseries.zarr"), path="q_cms", mode="r")
    assert (flow.metadata.zarr_format, flow.shape, flow.chunks) == (2, (12, 4383), (12, 1000))
    assert flow.fill_value == 0
    assert (folder / "alpine_timeseries.zarr" / ".zmetadata").exists()
    group = zarr.open_group(str(folder / "lowland_timeseries.zarr"), mode="r")
    arrays = {name: array for name, array in group.arrays() if array.ndim == 2}
    assert {array.metadata.zarr_format for array in arrays.values()} == {3}
    assert {array.shape for array in arrays.values()} == {(3652, 10)}
    assert len({array.chunks for array in arrays.values()}) == 4
    assert arrays["streamflow_mmd"].shards == (2000, 10)


@pytest.mark.parametrize("dataset", ["alpine", "lowland"])
def test_ids_are_text_with_a_leading_zero_and_agree(folder: Path, dataset: str) -> None:
    ids = read(folder, f"{dataset}_timeseries", "basin").tolist()
    assert ids == read(folder, f"{dataset}_attributes", "basin").tolist()
    assert len(set(ids)) == len(ids)
    assert all(isinstance(name, str) and len(name) == 8 and name[0] == "0" for name in ids)


@pytest.mark.parametrize(("dataset", "region"), [("alpine", ALPINE), ("lowland", LOWLAND)])
def test_time_axes_mean_the_same_days_in_their_own_units(folder: Path, dataset: str, region: Region) -> None:
    time = zarr.open_array(str(folder / f"{dataset}_timeseries.zarr"), path="time", mode="r")
    unit, _, since = str(time.attrs["units"]).split()
    stored = np.asarray(time[...])
    assert stored.dtype == np.int64
    step = {"days": np.timedelta64(1, "D"), "nanoseconds": np.timedelta64(1, "ns")}[unit]
    days = np.datetime64(since) + stored * step
    expected = np.arange(np.datetime64(region.first_day), np.datetime64(region.last_day) + 1)
    np.testing.assert_array_equal(days, expected)


def test_alpine_flow_is_a_volume_that_the_area_turns_into_the_simulated_depth(folder: Path, alpine: Record) -> None:
    flow = read(folder, "alpine_timeseries", "q_cms").astype(np.float64)
    area = read(folder, "alpine_attributes", "area_km2")
    observed = flow != FLAG
    assert 0.9 < observed.mean() < 1
    depth = flow * 86.4 / area[:, None]
    np.testing.assert_allclose(depth[observed], alpine.streamflow[observed], rtol=1e-6)


def test_lowland_arrays_are_the_simulated_ones_in_other_units(folder: Path, lowland: Record) -> None:
    temperature = read(folder, "lowland_timeseries", "temperature_mean").T - 273.15
    np.testing.assert_allclose(temperature, lowland.weather.temperature, atol=1e-4)
    flow = read(folder, "lowland_timeseries", "streamflow_mmd").T
    observed = np.isfinite(flow)
    np.testing.assert_allclose(flow[observed], lowland.streamflow[observed], rtol=1e-6)
    depth = read(folder, "lowland_attributes", "soil_depth_cm") / 100
    np.testing.assert_allclose(depth, lowland.attributes.soil_depth)


def test_gaps_are_those_of_gauges(folder: Path, lowland: Record) -> None:
    missing = np.isnan(read(folder, "lowland_timeseries", "streamflow_mmd").T)
    assert missing[2, :1000].all(), "a young gauge"
    assert not missing[2, -1000:].any()
    assert missing[5].sum() == 986, "one long gap"
    assert np.flatnonzero(missing.any(axis=1)).tolist() == [2, 5]
    temperature = read(folder, "alpine_timeseries", "tair_c")
    assert 0 < np.isnan(temperature).mean() < 0.01
    assert np.isfinite(read(folder, "alpine_timeseries", "pcp_mm")).all()


@pytest.mark.parametrize("region", [ALPINE, LOWLAND])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_day_of_the_year_explains_little_of_the_flow(region: Region, seed: int) -> None:
    record = simulate(region, seed)
    day = day_of_year(record.days).astype(int)
    cut = len(day) - 3 * 365
    known = np.stack([record.streamflow[:, :cut][:, day[:cut] == d].mean(axis=1) for d in range(1, 366)], axis=1)
    seen, guess = record.streamflow[:, cut:], known[:, np.minimum(day[cut:], 365) - 1]
    error = ((seen - guess) ** 2).sum(axis=1)
    spread = ((seen - seen.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    assert np.median(1 - error / spread) < 0.25
