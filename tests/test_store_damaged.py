"""A chunk that is cut, emptied or altered is an error that names array, key and bytes; never absent, never values."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numcodecs import BZ2, LZMA, Blosc, GZip, Shuffle, Zlib, Zstd
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

from headrace.coordinates import read_vector
from headrace.open_store import open_group
from headrace.schemas.errors import ReadError, SourceError
from headrace.store import StoredArray, open_array
from s3_server import CLIENTS, Bucket

DIMS = ("basin", "time")
NAME = "q"
STEPS = 500
LAYOUTS: dict[str, dict[str, Any]] = {
    "v2 raw": {"zarr_format": 2, "compressors": None},
    "v2 zstd": {"zarr_format": 2, "compressors": Zstd()},
    "v2 blosc": {"zarr_format": 2, "compressors": Blosc()},
    "v2 gzip": {"zarr_format": 2, "compressors": GZip()},
    "v2 zlib": {"zarr_format": 2, "compressors": Zlib()},
    "v2 bz2": {"zarr_format": 2, "compressors": BZ2()},
    "v2 lzma": {"zarr_format": 2, "compressors": LZMA()},
    "v2 shuffle": {"zarr_format": 2, "compressors": Zlib(), "filters": [Shuffle(4)]},
    "v3 raw": {"zarr_format": 3, "compressors": None},
    "v3 zstd": {"zarr_format": 3, "compressors": [ZstdCodec()]},
    "v3 blosc": {"zarr_format": 3, "compressors": [BloscCodec()]},
    "v3 gzip": {"zarr_format": 3, "compressors": [GzipCodec()]},
    "v3 crc32c": {"zarr_format": 3, "compressors": [Crc32cCodec()]},
    "v3 sharded": {"zarr_format": 3, "compressors": [ZstdCodec()], "shards": (2, STEPS)},
}


def damaged(folder: Path, layout: dict[str, Any], damage: str) -> tuple[StoredArray, str, int]:
    """Write an array of two stored objects, damage the second; return array, key and the bytes left of it."""
    uri = str(folder / "s.zarr")
    settings = {name: value for name, value in layout.items() if name != "zarr_format"}
    group = zarr.open_group(uri, mode="w", zarr_format=layout["zarr_format"])
    chunks = (1, 250) if "shards" in layout else (2, STEPS)
    names: dict[str, Any] = {"dimension_names": DIMS} if layout["zarr_format"] == 3 else {}
    written = group.create_array(NAME, shape=(4, STEPS), chunks=chunks, dtype="f4", fill_value=0, **names, **settings)
    written.attrs["_ARRAY_DIMENSIONS"] = list(DIMS)
    written[:] = np.random.default_rng(0).random((4, STEPS), dtype=np.float32)
    array = open_array(open_group(uri), uri, NAME, dims=DIMS)
    assert array is not None
    key = array.object_key(1, 0)
    path = folder / "s.zarr" / key
    content = path.read_bytes()
    left = {"half": content[: len(content) // 2], "short": content[:-1], "empty": b""}[damage]
    path.write_bytes(left)
    return array, key, len(left)


@pytest.mark.parametrize("damage", ["half", "short", "empty"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_damaged_chunk_is_named_with_array_key_and_bytes(tmp_path: Path, layout: dict[str, Any], damage: str) -> None:
    array, key, nbytes = damaged(tmp_path, layout, damage)
    with pytest.raises(ReadError, match="chunk cannot be decoded") as caught:
        array.read(slice(2, 4), slice(0, STEPS))
    for part in (str(tmp_path), f"array {NAME}", key, f"({nbytes} bytes)"):
        assert part in str(caught.value)
    assert isinstance(caught.value, SourceError)
    assert caught.value.__cause__ is not None
    stat = array.stat(1, 0)
    assert stat is not None, "a damaged chunk is not absent"
    assert stat.nbytes == nbytes
    assert array.read(slice(0, 2), slice(0, STEPS)).all(), "other chunks stay readable"


@pytest.mark.parametrize("layout", ["v2 blosc", "v3 blosc", "v3 sharded"])
def test_an_empty_chunk_is_not_said_to_lack_bytes_of_a_size_made_up(tmp_path: Path, layout: str) -> None:
    array, _, _ = damaged(tmp_path, LAYOUTS[layout], "empty")
    with pytest.raises(ReadError, match="0 bytes stored, too few for any chunk"):
        array.read(slice(2, 4), slice(0, STEPS))


def test_message_of_a_wide_block_stays_short(tmp_path: Path) -> None:
    uri = str(tmp_path / "s.zarr")
    group = zarr.open_group(uri, mode="w", zarr_format=2)
    written = group.create_array(NAME, shape=(4, 6), chunks=(1, 1), dtype="f4", fill_value=0)
    written.attrs["_ARRAY_DIMENSIONS"] = list(DIMS)
    written[:] = 1
    for basin, step in product(range(4), range(6)):
        (tmp_path / "s.zarr" / NAME / f"{basin}.{step}").write_bytes(b"")
    array = open_array(open_group(uri), uri, NAME, dims=DIMS)
    assert array is not None
    with pytest.raises(ReadError, match="and 20 more"):
        array.read(slice(0, 4), slice(0, 6))


@pytest.mark.parametrize("damage", ["empty", "short", "longer", "absent"])
@pytest.mark.parametrize("layout", ["v2 blosc", "v3 blosc", "v3 sharded"])
@pytest.mark.parametrize("client", [None, *CLIENTS])
def test_a_damaged_coordinate_is_an_error_and_nothing_is_read_beyond_its_end(
    bucket: Bucket, client: str | None, layout: str, damage: str
) -> None:
    """Blosc reads what its header says, wherever that lies; an empty object of a bucket ended the process."""
    folder = bucket.path / "s.zarr"
    settings = LAYOUTS[layout] | ({"shards": (20,)} if "shards" in LAYOUTS[layout] else {})
    version = settings.pop("zarr_format")
    written = zarr.open_group(folder, mode="w", zarr_format=version)
    chunks = (10,) if "shards" in settings else (20,)
    written.create_array("time", shape=(41,), chunks=chunks, dtype="i8", fill_value=0, **settings)[:] = np.arange(41)
    uri, storage = (str(folder), None) if client is None else (f"{bucket.url}/s.zarr", bucket.through(client).storage)
    values, _ = read_vector(open_group(uri, storage), uri, "time")
    assert values.tolist() == list(range(41))
    path = folder / "time" / ("1" if version == 2 else "c/1")
    content = path.read_bytes()
    if damage == "absent":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "short": content[:-1], "longer": content + b"x"}[damage])
    with pytest.raises(SourceError, match="coordinate time cannot be read"):
        read_vector(open_group(uri, storage), uri, "time")


def test_a_single_entry_that_is_the_fill_value_need_not_be_stored(tmp_path: Path) -> None:
    """Stores that grew step by step lack the chunk of time 0."""
    group = zarr.open_group(tmp_path / "s.zarr", mode="w")
    group.create_array("time", shape=(3,), chunks=(1,), dtype="i8", fill_value=0)[:] = np.arange(3)
    assert not (tmp_path / "s.zarr" / "time" / "c" / "0").exists()
    assert read_vector(group, str(tmp_path / "s.zarr"), "time")[0].tolist() == [0, 1, 2]
