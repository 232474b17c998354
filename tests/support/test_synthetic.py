"""The synthetic stores say what they hold: files read back equal the truth."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import synthetic
from layouts import StoreLayout, periods, store_layouts, window_specs

pytestmark = pytest.mark.filterwarnings(
    "ignore::zarr.errors.UnstableSpecificationWarning",
    "ignore:Consolidated metadata is currently not part",
)


def read(path: Path, name: str) -> NDArray[Any]:
    """Read an array by xarray's own rules, except v2's fill 0, as [basin, step] float32."""
    fill = zarr.open_array(str(path), path=name, mode="r").fill_value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", xr.SerializationWarning)
        with xr.open_zarr(path, chunks=None, consolidated=False, mask_and_scale=fill != 0) as data:
            values: NDArray[Any] = data[name].transpose("basin", "time").to_numpy()
    return values.astype(np.float32)


def stored(path: Path, name: str) -> NDArray[Any]:
    """Return an array of a store as it is, in its own order of dimensions."""
    array = zarr.open_array(str(path), path=name, mode="r")
    return np.asarray(array[...])


def open_raw(path: Path) -> xr.Dataset:
    data: xr.Dataset = xr.open_zarr(path, chunks=None, consolidated=False, mask_and_scale=False)
    return data


def test_encoded_values_are_unique_and_exact_in_float32() -> None:
    values = synthetic.encode(
        np.arange(64)[:, None, None, None],
        np.arange(0, 4096, 63)[:, None, None],
        np.arange(8)[:, None],
        np.arange(8),
    )
    assert np.unique(values).size == values.size
    assert synthetic.encode(63, 4095, 7, 7) == 2**24
    assert synthetic.encode(0, 0, 0) == 1


@given(st.integers(0, 63), st.integers(0, 4095), st.integers(0, 7), st.integers(0, 7))
def test_decode_value_inverts_encode(basin: int, step: int, variable: int, dataset: int) -> None:
    place = synthetic.decode_value(synthetic.encode(basin, step, variable, dataset))
    assert place == (dataset, variable, basin, step)


@pytest.mark.parametrize("value", [0.0, 1.5, np.nan, 2.0**25])
def test_decode_value_refuses_what_encode_cannot_make(value: float) -> None:
    with pytest.raises(ValueError, match="not an encoded value"):
        synthetic.decode_value(value)


@pytest.mark.parametrize("place", [(64, 0, 0), (0, 4096, 0), (0, 0, 8), (-1, 0, 0)])
def test_encode_refuses_places_beyond_its_limits(place: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        synthetic.encode(*place)


@settings(max_examples=60, deadline=None)
@given(store_layouts())
def test_any_layout_reads_back_as_its_truth(layout: StoreLayout) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = layout.write(Path(folder) / "store.zarr")
        for name, array in store.arrays.items():
            raw = stored(store.path, name)
            raw = raw if store.layouts[name].dims[0] == "basin" else raw.T
            np.testing.assert_array_equal(raw, array.raw)
            number = store.variables.index(name)
            rows, steps = np.nonzero(store.observed[name] & ~array.absent)
            np.testing.assert_array_equal(array.truth[rows, steps], synthetic.encode(rows, steps, number))
            gone = array.absent & (store.layouts[name].fill_value == 0)
            assert np.all(array.truth[gone] == 0)
            assert np.isnan(array.truth[layout.missing[name] & ~gone]).all()
        ids = [i.decode() if isinstance(i, bytes) else str(i) for i in stored(store.path, "basin")]
        assert ids == list(store.basin_ids)


@settings(max_examples=40, deadline=None)
@given(store_layouts(with_absent=False))
def test_xarray_reads_the_same_values_and_times(layout: StoreLayout) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = layout.write(Path(folder) / "store.zarr")
        for name, spec in store.layouts.items():
            absent = store.arrays[name].absent
            if spec.fill_value == 0 and (spec.missing_as != "nan" or absent.any()):
                continue
            if spec.missing_as != "nan" and layout.zarr_format == 2:
                continue  # xarray keeps one flag of a format 2 array: the storage fill value
            truth = store.truth[name]
            if spec.fill_value == -999 and spec.missing_as == "nan" and layout.zarr_format == 3:
                truth = np.where(absent, np.float32(-999), truth)
            np.testing.assert_array_equal(read(store.path, name), truth)
        with open_raw(store.path) as data:
            np.testing.assert_array_equal(data.time.to_numpy(), store.times)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_packed_array_with_flag_equals_xarrays_decoding(tmp_path: Path, zarr_format: int) -> None:
    store = synthetic.write_store(
        tmp_path / "packed.zarr",
        variables=["precipitation"],
        zarr_format=zarr_format,
        dtype="int16",
        fill_value=-32768,
        missing_as=-32768,
        missing={"precipitation": lambda b, t: np.arange(b * t).reshape(b, t) % 3 == 1},
        scale_factor=0.1,
        add_offset=5.0,
    )
    truth = store.truth["precipitation"]
    assert truth[0, 0] == np.float32(5.0)
    assert np.isnan(truth[0, 1])
    np.testing.assert_allclose(read(store.path, "precipitation"), truth, rtol=1e-6)


@pytest.mark.parametrize("plain", [True, False])
def test_flag_that_float32_rounds_is_missing_however_it_is_declared(tmp_path: Path, plain: bool) -> None:
    layout = synthetic.ArrayLayout(missing_as=-999.99, plain_fill_attribute=plain)
    hole = np.arange(60).reshape(3, 20) % 7 == 0
    store = synthetic.write_store(tmp_path / "s.zarr", variables={"a": layout}, zarr_format=3, missing={"a": hole})
    np.testing.assert_array_equal(np.isnan(store.truth["a"]), hole)
    declared = zarr.open_array(str(store.path), path="a", mode="r").attrs["_FillValue"]
    assert isinstance(declared, float if plain else str)
    if not plain:
        np.testing.assert_array_equal(read(store.path, "a"), store.truth["a"])


@pytest.mark.parametrize("id_dtype", ["str", "object", "U", "S", "int64", "float64"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_ids_are_written_in_every_type(tmp_path: Path, zarr_format: int, id_dtype: str) -> None:
    store = synthetic.write_store(tmp_path / "s.zarr", basins=2, zarr_format=zarr_format, id_dtype=id_dtype)
    ids = stored(store.path, "basin")
    expected = [int(i) for i in store.basin_ids] if "64" in id_dtype else list(store.basin_ids)
    assert [i.decode() if isinstance(i, bytes) else i for i in ids] == expected


def test_deleted_chunk_is_zero_or_missing_by_its_fill_value(tmp_path: Path) -> None:
    store = synthetic.write_store(
        tmp_path / "s.zarr",
        basins=4,
        steps=6,
        variables=["a", "b", "c"],
        chunks=(2, 3),
        fill_value={"a": 0.0, "b": float("nan"), "c": -999.0},
        absent_chunks={name: [(1, 0)] for name in "abc"},
    )
    hole = np.zeros((4, 6), dtype=bool)
    hole[2:, :3] = True
    for array in store.arrays.values():
        np.testing.assert_array_equal(array.absent, hole)
    assert np.all(store.truth["a"][hole] == 0)
    assert np.isnan(store.truth["b"][hole]).all()
    assert np.isnan(store.truth["c"][hole]).all()


def test_gaps_split_the_axis_into_segments(tmp_path: Path) -> None:
    store = synthetic.write_store(tmp_path / "s.zarr", steps=6, gaps={1: 3, 3: 1}, time_unit="hours", step_seconds=3600)
    assert store.segments == ((0, 2), (2, 4), (4, 6))
    assert store.positions.tolist() == [0, 1, 5, 6, 8, 9]
    with open_raw(store.path) as data:
        np.testing.assert_array_equal(data.time.to_numpy(), store.times)


def test_calendars_without_leap_days_count_in_their_own_days(tmp_path: Path) -> None:
    store = synthetic.write_store(
        tmp_path / "s.zarr",
        steps=2,
        calendar="noleap",
        time_start="2000-03-01",
        time_since="2000-02-01",
    )
    assert stored(store.path, "time").tolist() == [28, 29]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_extra_dimensions_of_size_one_are_kept(tmp_path: Path, zarr_format: int) -> None:
    store = synthetic.write_store(
        tmp_path / "s.zarr",
        basins=2,
        steps=5,
        variables=["a"],
        zarr_format=zarr_format,
        dims=("band", "time", "basin"),
        chunks=(1, 2, 2),
    )
    array = stored(store.path, "a")
    assert array.shape == (1, 5, 2)
    np.testing.assert_array_equal(array[0].T, store.truth["a"])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_read_back_with_units_and_text(tmp_path: Path, zarr_format: int) -> None:
    path = synthetic.write_attributes(
        tmp_path / "a.zarr",
        ["01", "02"],
        {"area": [1.5, np.nan], "climate": ["dry", "wet"], "count": np.array([3, 4])},
        {"area": "km2"},
        zarr_format=zarr_format,
        consolidated=True,
    )
    with xr.open_zarr(path, chunks=None, consolidated=True) as data:
        assert data.basin.to_numpy().tolist() == ["01", "02"]
        assert data.area.attrs["units"] == "km2"
        np.testing.assert_array_equal(data.area, [1.5, np.nan])
        assert data.climate.to_numpy().tolist() == ["dry", "wet"]
        assert data["count"].to_numpy().tolist() == [3, 4]


@given(window_specs(), st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), periods(n))))
def test_specs_and_periods_are_valid(spec: tuple[int, ...], drawn: tuple[int, tuple[int, int]]) -> None:
    hindcast, forecast, warmup, stride = spec
    steps, (start, stop) = drawn
    assert hindcast >= 1
    assert forecast >= 0
    assert 0 <= warmup < hindcast + forecast
    assert 1 <= stride <= 4
    assert 0 <= start < stop <= steps
