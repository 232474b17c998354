"""A chunk that is cut, emptied or altered is an error that names array, key and bytes; never absent, never values."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numcodecs import BZ2, LZMA, Blosc, GZip, Shuffle, Zlib, Zstd
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

from headrace.open_store import open_group
from headrace.schemas.errors import ReadError, SourceError
from headrace.store import StoredArray, open_array

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
