"""What a read without copies returns is what zarr returns, whatever the selection meets."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr

from headrace.uncopied import read_block

VALUES = np.arange(7 * 11, dtype="f8").reshape(7, 11)
SELECTIONS: dict[str, tuple[slice | int, ...]] = {
    "a whole chunk": (slice(0, 4), slice(5, 10)),
    "a clipped chunk": (slice(4, 7), slice(10, 11)),
    "part of a chunk": (slice(1, 3), slice(5, 10)),
    "several chunks": (slice(0, 7), slice(3, 11)),
    "an absent chunk": (slice(4, 7), slice(0, 5)),
    "one row": (2, slice(5, 10)),
    "nothing": (slice(2, 2), slice(0, 5)),
}


def array_of(folder: Path, zarr_format: Literal[2, 3], **settings: Any) -> zarr.Array[Any]:
    """Write values, one chunk left out."""
    made: Any = {"dtype": "f8", "fill_value": -1.0} | settings
    array = zarr.create_array(folder, shape=VALUES.shape, chunks=(4, 5), zarr_format=zarr_format, **made)
    array[:4], array[:, 5:] = VALUES[:4], VALUES[:, 5:]
    return array


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize(
    ("zarr_format", "settings"),
    [(2, {}), (2, {"order": "F"}), (2, {"dtype": ">f4"}), (3, {}), (3, {"shards": (8, 5)}), (3, {"dtype": ">i2"})],
    ids=["v2", "v2 F", "v2 >f4", "v3", "v3 shards", "v3 >i2"],
)
def test_same_as_zarr(
    tmp_path: Path, zarr_format: Literal[2, 3], settings: dict[str, Any], selection: tuple[slice | int, ...]
) -> None:
    """Values, type and shape agree."""
    fill = {"fill_value": -1} if settings.get("dtype") == ">i2" else {}
    array = array_of(tmp_path / "a", zarr_format, **settings, **fill)
    expected = np.asarray(array[selection])
    found = read_block(array, selection)
    np.testing.assert_array_equal(found, expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)


def test_a_whole_chunk_is_handed_on(tmp_path: Path) -> None:
    """The memory of a whole chunk is the codec's, not a copy."""
    array = array_of(tmp_path / "a", 2)
    assert not read_block(array, (slice(0, 4), slice(5, 10))).flags.owndata
    assert read_block(array, (slice(0, 7), slice(3, 11))).flags.writeable
