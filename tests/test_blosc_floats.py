"""Chunks decoded together are what they are one by one; what is stored otherwise or damaged is left to others."""

from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, ZstdCodec

from headrace.blosc_floats import decode_chunks, float_chunks
from headrace.decode import decode
from headrace.decode_floats import float_rule
from headrace.objects.fetch import FileFetch
from headrace.open_store import open_group
from headrace.schemas.variables import DecodeRule
from headrace.store import StoredArray, open_array

RULE = DecodeRule(missing_values=(3.0,), valid_max=90.0)
BLOSC: dict[int, dict[str, Any]] = {2: {"compressors": numcodecs.Blosc("zstd")}, 3: {"compressors": BloscCodec()}}


def stored(folder: Path, zarr_format: Any, dims: tuple[str, ...] = ("basin", "time"), **settings: Any) -> StoredArray:
    """Write an array of 5 × 17 in chunks of 2 × 7, of which one is absent."""
    sizes, chunks = {"basin": 5, "time": 17}, {"basin": 2, "time": 7}
    options = {"dtype": "f8", "fill_value": 4.0, **BLOSC[zarr_format], **settings}
    if zarr_format == 3:
        options["dimension_names"] = dims
    else:
        options["attributes"] = {"_ARRAY_DIMENSIONS": list(dims)}
    array = zarr.open_group(str(folder), mode="w", zarr_format=zarr_format).create_array(
        "q", shape=tuple(sizes[d] for d in dims), chunks=tuple(chunks[d] for d in dims), **options
    )
    array[:] = np.arange(85).reshape(array.shape)
    found = open_array(open_group(str(folder)), str(folder), "q", dims=("basin", "time"))
    assert found is not None
    Path(folder, found.object_key(0, 1)).unlink()
    return found


def together(array: StoredArray, basin_chunk: int, out: Any = None, change: Any = None) -> Any:
    chunks, rule = float_chunks(array), float_rule(RULE, array.dtype)
    assert chunks is not None
    assert rule is not None
    rows = array.grid.basin.bounds(basin_chunk)
    data = [FileFetch(array.uri).data(array.object_key(basin_chunk, t)) for t in range(3)]
    values = np.empty((rows[1] - rows[0], 17), np.float32) if out is None else out
    edges, memory = np.array([0, 7, 14, 17]), np.empty(chunks.nbytes, np.uint8)
    done = decode_chunks(
        chunks, rule, data if change is None else change(data), edges, values, absent=np.float32(4), memory=memory
    )
    return values if done else None


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_same_as_one_by_one(tmp_path, zarr_format, dtype):
    array = stored(tmp_path, zarr_format, dtype=dtype)
    for basin_chunk in range(3):
        raw = array.read(slice(*array.grid.basin.bounds(basin_chunk)), slice(0, 17))
        assert together(array, basin_chunk).tobytes() == decode(raw, RULE).tobytes()


@pytest.mark.parametrize(
    ("zarr_format", "settings"),
    [
        (2, {"order": "F"}),
        (2, {"dtype": ">f8"}),
        (3, {"serializer": BytesCodec(endian="big")}),
        (2, {"dtype": "i4"}),
        (2, {"dtype": "f2"}),
        (2, {"compressors": numcodecs.Zstd()}),
        (3, {"compressors": ZstdCodec()}),
        (2, {"dims": ("time", "basin")}),
        (3, {"shards": (4, 14)}),
    ],
)
def test_chunks_stored_otherwise_are_left_to_others(tmp_path, zarr_format, settings):
    assert float_chunks(stored(tmp_path, zarr_format, **settings)) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda chunk: chunk[:-1],
        lambda chunk: chunk[:5],
        lambda chunk: b"",
        lambda chunk: chunk[:12] + (100).to_bytes(4, "little") + bytes(84),
        lambda chunk: numcodecs.Blosc().encode(np.zeros(13)),
        lambda chunk: numcodecs.Blosc().encode(np.zeros(15)),
    ],
)
def test_a_damaged_chunk_is_left_to_others(tmp_path, damage):
    array = stored(tmp_path, 2)
    assert together(array, 1, change=lambda data: [data[0], data[1], damage(data[2])]) is None


def test_what_does_not_fit_is_refused(tmp_path):
    array = stored(tmp_path, 2)
    for shape in ((3, 17), (2, 16)):
        with pytest.raises(IndexError, match="do not fit"):
            together(array, 0, out=np.empty(shape, np.float32))
    with pytest.raises(IndexError, match="do not fit"):
        together(array, 0, change=lambda data: data[:2])
