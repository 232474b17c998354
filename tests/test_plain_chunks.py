"""What is decoded without Zarr is what Zarr decodes, for every codec and layout covered; the rest is left to it."""

import random
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

from headrace.open_store import open_group
from headrace.schemas.errors import DamagedChunkError
from headrace.scratch import Scratch
from headrace.store import open_array

PLAIN: list[tuple[int, dict[str, Any]]] = [
    (2, {"compressors": None}),
    (2, {"compressors": numcodecs.Blosc("zstd", shuffle=2), "order": "F"}),
    (2, {"compressors": numcodecs.LZ4(), "dtype": ">f4"}),
    (2, {"compressors": numcodecs.BZ2(), "dtype": "i2", "fill_value": None}),
    (3, {"compressors": None, "dtype": ">i4", "fill_value": 3}),
    (3, {"compressors": BloscCodec(), "dtype": ">f8"}),
    (3, {"compressors": GzipCodec(), "dtype": "f4", "chunk_key_encoding": {"name": "v2", "separator": "."}}),
    (3, {"compressors": ZstdCodec()}),
]
OTHERS: list[tuple[int, dict[str, Any]]] = [
    (2, {"filters": [numcodecs.Delta("f8")]}),
    (3, {"shards": (4, 14)}),
    (3, {"compressors": [ZstdCodec(), Crc32cCodec()]}),
    (3, {"filters": [TransposeCodec(order=(1, 0))]}),
]


@pytest.mark.parametrize("dims", [("basin", "time"), ("time", "basin"), ("basin", "member", "time")], ids="-".join)
@pytest.mark.parametrize(("zarr_format", "settings"), PLAIN)
def test_same_as_zarr(tmp_path: Path, zarr_format: Any, settings: dict[str, Any], dims: tuple[str, ...]):
    sizes, chunks = {"basin": 5, "time": 17, "member": 1}, {"basin": 2, "time": 7, "member": 1}
    array = written(tmp_path, zarr_format, dims, sizes, chunks, settings)
    stored = open_array(open_group(str(tmp_path)), str(tmp_path), "q", dims=("basin", "time"))
    assert stored is not None
    assert stored.decoder is not None
    by_meaning = np.asarray(array[:]).squeeze(axis=stored.grid.extra)
    truth = by_meaning.T if stored.grid.time_first else by_meaning
    for basins in (slice(0, 5), slice(2, 4), slice(4, 5), slice(1, 3)):
        for steps in (slice(0, 17), slice(7, 14), slice(14, 17), slice(3, 9)):
            block = stored.read(basins, steps)
            assert block.dtype == stored.dtype
            np.testing.assert_array_equal(block, truth[basins, steps])


@pytest.mark.parametrize(("zarr_format", "settings"), OTHERS)
def test_what_is_not_plain_is_left_to_zarr(tmp_path: Path, zarr_format: Any, settings: dict[str, Any]):
    array = written(
        tmp_path, zarr_format, ("basin", "time"), {"basin": 5, "time": 17}, {"basin": 2, "time": 7}, settings
    )
    stored = open_array(open_group(str(tmp_path)), str(tmp_path), "q", dims=("basin", "time"))
    assert stored is not None
    assert stored.decoder is None
    np.testing.assert_array_equal(stored.read(slice(1, 5), slice(3, 17)), array[1:5, 3:17])


@pytest.mark.parametrize(("chunks", "blocks"), [((4, 6), [(0, 4), (4, 8)]), ((2, 6), [(0, 4)])], ids=["one", "two"])
def test_leased_memory_holds_the_same_values_until_it_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: tuple[int, int], blocks: list[tuple[int, int]]
):
    monkeypatch.setattr("headrace.plain_chunks.LEAST_NBYTES", 1)
    dims = {"basin": 8, "time": 6}
    array = written(tmp_path, 2, ("basin", "time"), dims, dict(zip(dims, chunks, strict=True)),
                    {"compressors": numcodecs.Blosc("lz4")})  # fmt: skip
    stored = open_array(open_group(str(tmp_path)), str(tmp_path), "q", dims=("basin", "time"))
    assert stored is not None
    scratch = Scratch()
    with scratch.lease() as lease:
        held = [stored.read(slice(*rows), slice(0, 6), lease=lease) for rows in blocks]
        for rows, values in zip(blocks, held, strict=True):  # no block overwrites another
            np.testing.assert_array_equal(values, array[slice(*rows)])
        lease.give_back()
        assert scratch.nbytes == len(blocks) * chunks[0] * chunks[1] * 8
        np.testing.assert_array_equal(stored.read(slice(4, 8), slice(0, 6), lease=lease), array[4:8])
        assert scratch.nbytes == (len(blocks) - 1) * chunks[0] * chunks[1] * 8  # used again
    assert scratch.nbytes == 0


def test_a_chunk_that_holds_less_is_damaged_whatever_the_leased_memory_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("headrace.plain_chunks.LEAST_NBYTES", 1)
    codec = numcodecs.Blosc("lz4")
    written(tmp_path, 2, ("basin", "time"), {"basin": 4, "time": 6}, {"basin": 2, "time": 6}, {"compressors": codec})
    (tmp_path / "q" / "1.0").write_bytes(codec.encode(np.zeros((2, 5))))
    stored = open_array(open_group(str(tmp_path)), str(tmp_path), "q", dims=("basin", "time"))
    assert stored is not None
    with Scratch().lease() as lease:
        stored.read(slice(0, 2), slice(0, 6), lease=lease)
        lease.give_back()
        with pytest.raises(DamagedChunkError):
            stored.read(slice(2, 4), slice(0, 6), lease=lease)


ANY_DTYPE = ["?", "u1", "i2", ">i2", "i8", "f2", "f4", ">f4", "f8", "c8", "M8[D]", ">M8[s]", "m8[s]", "S3", "<U2"]
ANY_DIMS = [("basin", "time"), ("time", "basin"), ("basin", "member", "time"), ("member", "time", "basin")]
ANY_COMPRESSOR: dict[int, list[Any]] = {
    2: [None, numcodecs.Blosc("lz4", shuffle=1), numcodecs.LZ4(), numcodecs.BZ2(), numcodecs.LZMA(), numcodecs.Zlib(),
        numcodecs.GZip(), numcodecs.Zstd(checksum=True)],
    3: [None, BloscCodec(shuffle="bitshuffle", typesize=1), BloscCodec(cname="lz4"), GzipCodec(),
        ZstdCodec(checksum=True)],
}  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_any_plain_array_is_read_as_zarr_reads_it(tmp_path: Path, seed: int):
    draw = random.Random(seed)
    zarr_format: Any = 2 + seed % 2
    dtype = np.dtype(ANY_DTYPE[seed % len(ANY_DTYPE)])
    dims = list(draw.choice(ANY_DIMS))
    shape = tuple(1 if d == "member" else draw.randint(1, 9) for d in dims)
    sizes = dict(zip(dims, shape, strict=True))
    largest = [3 if d == "member" and zarr_format == 2 else n for d, n in zip(dims, shape, strict=True)]
    chunks = tuple(draw.randint(1, n) for n in largest)
    settings: dict[str, Any] = {"dtype": dtype, "compressors": draw.choice(ANY_COMPRESSOR[zarr_format])}
    settings["chunk_key_encoding"] = {
        "name": "v2" if zarr_format == 2 else draw.choice(["v2", "default"]), "separator": draw.choice("./"),
    }  # fmt: skip
    if zarr_format == 2:
        settings |= {"order": draw.choice("CF"), "fill_value": None, "attributes": {"_ARRAY_DIMENSIONS": dims}}
    else:
        settings["dimension_names"] = dims
    array = zarr.open_group(str(tmp_path), mode="w", zarr_format=zarr_format).create_array(
        "q", shape=shape, chunks=chunks, **settings
    )
    values = np.random.default_rng(seed).integers(1, 100, shape).astype("i8").astype(dtype)
    for corner in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunks, strict=True))):
        if draw.random() < 0.7:
            place = tuple(slice(i * c, i * c + c) for i, c in zip(corner, chunks, strict=True))
            array[place] = values[place]
    stored = open_array(open_group(str(tmp_path)), str(tmp_path), "q", dims=("basin", "time"))
    assert stored is not None
    assert stored.decoder is not None
    truth = np.asarray(array[...]).transpose([*(dims.index(d) for d in ("basin", "time")), *stored.grid.extra])
    truth = truth.reshape(truth.shape[:2])
    for _ in range(4):
        edges = [sorted(draw.sample(range(extent + 1), k=2)) for extent in (sizes["basin"], sizes["time"])]
        basins, steps = (slice(*pair) for pair in edges)
        block = stored.read(basins, steps)
        assert block.dtype == stored.dtype
        np.testing.assert_array_equal(block, truth[basins, steps])


def written(
    path: Path, zarr_format: Any, dims: Any, sizes: dict[str, int], chunks: dict[str, int], settings: dict[str, Any]
) -> zarr.Array[Any]:
    """Write an array whose chunk at the origin is absent."""
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    made: dict[str, Any] = {"dtype": "f8", "fill_value": -1} | settings
    made |= {"dimension_names": dims} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": list(dims)}}
    shape = tuple(sizes[d] for d in dims)
    array = group.create_array("q", shape=shape, chunks=tuple(chunks[d] for d in dims), **made)
    values = np.arange(np.prod(shape)).reshape(shape)
    for corner in np.ndindex(*(-(-sizes[d] // chunks[d]) for d in dims)):
        if any(corner):
            place = tuple(slice(i * chunks[d], (i + 1) * chunks[d]) for i, d in zip(corner, dims, strict=True))
            array[place] = values[place]
    return array
