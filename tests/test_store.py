"""Stores as both phases see them: clear errors, right keys, right blocks, whatever the layout on disk."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.members import array_names
from headrace.open_store import open_group
from headrace.schemas.errors import ConfigError, ReadError, SourceError
from headrace.store import StoredArray, open_array
from layouts import StoreLayout, store_layouts
from synthetic import SyntheticStore, write_attributes, write_store

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
DIMS = ("basin", "time")
NAME = "q"


def opened(store: SyntheticStore | Path, name: str = NAME, dims: tuple[str, ...] = DIMS) -> StoredArray:
    uri = str(store if isinstance(store, Path) else store.path)
    array = open_array(open_group(uri), uri, name, dims=dims)
    assert array is not None
    return array


def one(path: Path, **settings_: Any) -> SyntheticStore:
    return write_store(path / "s.zarr", variables=[NAME], **{"basins": 4, "steps": 6, **settings_})


def object_files(store: SyntheticStore, name: str) -> set[str]:
    """Return the keys of all stored objects of an array, relative to the store."""
    root = store.path / name
    documents = {"zarr.json", ".zarray", ".zattrs"}
    return {str(f.relative_to(store.path)) for f in root.rglob("*") if f.is_file() and f.name not in documents}


def object_keys(array: StoredArray) -> dict[tuple[int, int], str]:
    grid = array.grid
    places = np.ndindex(grid.basin.num_chunks, grid.time.num_chunks)
    return {(b, t): array.object_key(b, t) for b, t in places}


def test_missing_store_lists_its_siblings(tmp_path: Path) -> None:
    for name in ("camels_us.zarr", "camels_gb.zarr"):
        write_store(tmp_path / name, basins=1, steps=1)
    with pytest.raises(
        SourceError, match=r"(?s)store not found.*beside it are: camels_gb\.zarr, camels_us\.zarr\n"
    ) as caught:
        open_group(str(tmp_path / "camels_uk.zarr"))
    assert caught.value.exit_code == 3
    assert str(tmp_path / "camels_uk.zarr") in str(caught.value)


def test_missing_folder_and_folder_without_metadata_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=f"no folder {tmp_path / 'no'}"):
        open_group(str(tmp_path / "no" / "s.zarr"))
    (tmp_path / "s.nc").write_bytes(b"CDF")
    with pytest.raises(SourceError, match="got:      a file"):
        open_group(str(tmp_path / "s.nc"))
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(SourceError, match="a folder without group metadata"):
        open_group(str(tmp_path / "empty.zarr"))
    assert not any((tmp_path / "empty.zarr").iterdir()), "looking must not write"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_in_place_of_a_store_is_refused(tmp_path: Path, zarr_format: int) -> None:
    store = one(tmp_path, zarr_format=zarr_format)
    with pytest.raises(SourceError, match=r"got: +an array, not a group"):
        open_group(str(store.path / NAME))


def test_a_file_in_place_of_a_store_and_broken_metadata_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file.zarr").write_text("not a store")
    with pytest.raises(SourceError, match=r"file\.zarr"):
        open_group(str(tmp_path / "file.zarr"))
    store = one(tmp_path, zarr_format=3)
    (store.path / "zarr.json").write_text("{")
    with pytest.raises(SourceError, match=r"(?s)cannot be opened.*JSON"):
        open_group(str(store.path))


def test_other_urls_are_refused_by_their_scheme() -> None:
    with pytest.raises(ConfigError, match=r"(?s)scheme is not supported.*got: +gs://"):
        open_group("gs://bucket/s.zarr")


def test_arrays_are_found_by_name_and_an_absent_one_is_none(tmp_path: Path) -> None:
    store = one(tmp_path)
    group = open_group(str(store.path))
    assert array_names(group) == ["basin", NAME, "time"]
    assert open_array(group, str(store.path), "p", dims=DIMS) is None
    group = zarr.open_group(str(store.path), mode="r+")
    group.create_group("inner")
    assert open_array(open_group(str(store.path)), str(store.path), "inner", dims=DIMS) is None


def test_stale_consolidated_metadata_is_not_believed(tmp_path: Path) -> None:
    store = one(tmp_path, consolidated=True)
    zarr.open_array(str(store.path / NAME), mode="r+").resize((4, 9))
    assert opened(store).grid.time.extent == 9


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_other_dimensions_are_refused_with_names_and_sizes(tmp_path: Path, zarr_format: int) -> None:
    store = one(tmp_path, zarr_format=zarr_format)
    with pytest.raises(SourceError, match=r"(?s)array basin.*expected: \(basin, time\) in any order.*got: +basin=4\n"):
        opened(store, "basin")
    group = zarr.open_group(str(store.path), mode="r+")
    names: dict[str, Any] = {"dimension_names": ("basin", "time", "level")} if zarr_format == 3 else {}
    level = group.create_array("level", shape=(4, 6, 2), dtype="f4", **names)
    level.attrs["_ARRAY_DIMENSIONS"] = ["basin", "time", "level"]
    with pytest.raises(SourceError, match="basin=4, time=6, level=2"):
        opened(store, "level")
    group.create_array("bare", shape=(4, 6), dtype="f4")
    with pytest.raises(SourceError, match="no dimension names"):
        opened(store, "bare")


@pytest.mark.parametrize("named", [["basin"], ["basin", "time", "level"]])
def test_dimension_names_that_do_not_fit_the_shape_are_refused(tmp_path: Path, named: list[str]) -> None:
    store = one(tmp_path)
    zarr.open_array(str(store.path / NAME), mode="r+").attrs["_ARRAY_DIMENSIONS"] = named
    with pytest.raises(SourceError, match="other dimensions"):
        opened(store, NAME, ("basin",) if len(named) == 1 else DIMS)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_array_with_broken_metadata_is_refused_by_name(tmp_path: Path, zarr_format: int) -> None:
    store = one(tmp_path, zarr_format=zarr_format)
    (store.path / NAME / ("zarr.json" if zarr_format == 3 else ".zarray")).write_text("{")
    with pytest.raises(SourceError, match=f"array {NAME}"):
        opened(store)


@settings(max_examples=60)
@given(store_layouts(max_variables=2), st.data())
def test_any_block_of_any_layout_reads_as_its_raw_values(layout: StoreLayout, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = layout.write(Path(folder) / "s.zarr")
        for name, written in store.arrays.items():
            array = opened(store, name)
            basins, steps = (
                slice(start, data.draw(st.integers(start + 1, size)))
                for size in written.raw.shape
                for start in [data.draw(st.integers(0, size - 1))]
            )
            block = array.read(basins, steps)
            np.testing.assert_array_equal(block, written.raw[basins, steps])
            assert block.dtype == array.dtype == written.raw.dtype
            assert array.dims == store.layouts[name].dims


@settings(max_examples=60)
@given(store_layouts(max_variables=2))
def test_keys_are_the_files_on_disk_and_only_absent_ones_have_no_stat(layout: StoreLayout) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = layout.write(Path(folder) / "s.zarr")
        for name, written in store.arrays.items():
            array = opened(store, name)
            keys = object_keys(array)
            files = object_files(store, name)
            assert files <= set(keys.values())
            for (b, t), key in keys.items():
                rows, steps = slice(*array.grid.basin.bounds(b)), slice(*array.grid.time.bounds(t))
                stat = array.stat(b, t)
                assert (stat is None) == (key not in files) == bool(written.absent[rows, steps].all())
                if stat is not None:
                    assert stat.nbytes == os.path.getsize(store.path / key)


@pytest.mark.parametrize(
    ("zarr_format", "encoding", "key"),
    [
        (2, {"name": "v2", "separator": "."}, f"{NAME}/1.0"),
        (2, {"name": "v2", "separator": "/"}, f"{NAME}/1/0"),
        (3, {"name": "default", "separator": "/"}, f"{NAME}/c/1/0"),
        (3, {"name": "default", "separator": "."}, f"{NAME}/c.1.0"),
        (3, {"name": "v2", "separator": "."}, f"{NAME}/1.0"),
    ],
)
def test_every_key_encoding_is_followed(tmp_path: Path, zarr_format: Any, encoding: Any, key: str) -> None:
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w", zarr_format=zarr_format)
    names: dict[str, Any] = {"dimension_names": DIMS} if zarr_format == 3 else {}
    array = group.create_array(
        NAME, shape=(4, 6), chunks=(2, 6), dtype="f4", fill_value=-1, chunk_key_encoding=encoding, **names
    )
    array.attrs["_ARRAY_DIMENSIONS"] = list(DIMS)
    array[2:] = np.ones((2, 6))
    stored = opened(tmp_path / "s.zarr")
    assert stored.object_key(1, 0) == key
    assert (tmp_path / "s.zarr" / key).is_file()
    assert stored.stat(0, 0) is None
    assert stored.stat(1, 0) is not None


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "dims",
    [("band", "basin", "time"), ("time", "band", "basin"), ("time", "basin", "band"), ("a", "basin", "b", "time")],
)
def test_extra_dimensions_of_length_1_may_stand_anywhere(
    tmp_path: Path, dims: tuple[str, ...], zarr_format: int
) -> None:
    chunks = tuple({"basin": 3, "time": 4}.get(dim, 1) for dim in dims)
    store = one(tmp_path, zarr_format=zarr_format, dims=dims, chunks=chunks)
    array = opened(store)
    np.testing.assert_array_equal(array.read(slice(1, 4), slice(3, 6)), store.arrays[NAME].raw[1:4, 3:6])
    assert set(object_keys(array).values()) == object_files(store, NAME)


def test_shards_are_the_stored_objects(tmp_path: Path) -> None:
    store = one(tmp_path, zarr_format=3, basins=5, steps=9, chunks=(1, 2), shards=(2, 4))
    array = opened(store)
    assert (array.grid.basin.chunk_size, array.grid.time.chunk_size) == (2, 4)
    assert set(object_keys(array).values()) == object_files(store, NAME)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_statics_read_as_one_column(tmp_path: Path, zarr_format: int) -> None:
    path = write_attributes(tmp_path / "a.zarr", ["01", "02", "03"], {"area": [1.0, 2.0, 3.0]}, zarr_format=zarr_format)
    array = opened(path, "area", ("basin",))
    np.testing.assert_array_equal(array.read(slice(1, 3), slice(0, 1)), [[2.0], [3.0]])
    assert not array.grid.has_time
    assert (path / array.object_key(0, 0)).is_file()


@pytest.mark.parametrize("dims", [("basin", "time"), ("time", "basin")])
def test_statics_may_have_a_time_axis_of_length_1(tmp_path: Path, dims: tuple[str, ...]) -> None:
    store = one(tmp_path, steps=1, dims=dims)
    array = opened(store, NAME, ("basin",))
    np.testing.assert_array_equal(array.read(slice(1, 3), slice(0, 1)), store.arrays[NAME].raw[1:3])
    assert array.object_key(0, 0) == f"{NAME}/0.0"


def test_fingerprint_changes_when_an_object_is_rewritten_in_place(tmp_path: Path) -> None:
    store = one(tmp_path, chunks=(2, 6))
    array = opened(store)
    before = [array.stat(b, 0) for b in (0, 1)]
    writer = zarr.open_array(str(store.path / NAME), mode="r+")
    writer[:2] = np.ones((2, 6))
    after = [opened(store).stat(b, 0) for b in (0, 1)]
    assert after[1] == before[1]
    assert after[0] != before[0]
    os.utime(store.path / array.object_key(1, 0), ns=(1, 1))
    assert array.stat(1, 0) != before[1]


def test_object_that_cannot_be_looked_at_is_not_called_absent(tmp_path: Path) -> None:
    store = one(tmp_path)
    (store.path / NAME / "0.0").unlink()
    (store.path / NAME).rename(tmp_path / "aside")
    array = opened(one(tmp_path / "other"))
    lost = StoredArray(str(store.path), NAME, array.array, array.dims, array.grid)
    (store.path / NAME).write_text("a file where a folder was")
    with pytest.raises(ReadError, match="cannot be looked at"):
        lost.stat(0, 0)
