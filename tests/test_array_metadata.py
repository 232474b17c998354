"""What counts as a change of metadata, and the words for it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from headrace.array_metadata import MEANING, VALUE_ATTRIBUTES, differences, metadata_text


def text_of(folder: Path, zarr_format: Any = 2, attributes: dict[str, Any] | None = None, **other: Any) -> str:
    group = zarr.open_group(str(folder / "s.zarr"), mode="w", zarr_format=zarr_format)
    given = {"shape": (4, 6), "chunks": (2, 3), "dtype": "float32", "fill_value": np.nan, **other}
    return metadata_text(group.create_array("a", attributes=attributes or {}, **given), VALUE_ATTRIBUTES)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_same_metadata_are_equal_also_where_they_hold_nan(tmp_path, zarr_format):
    before, now = (text_of(tmp_path, zarr_format, {"_FillValue": float("nan"), "units": "mm"}) for _ in range(2))
    assert before == now
    assert "NaN" in before
    other = text_of(tmp_path, zarr_format, {"_FillValue": float("nan"), "units": "m"})
    assert differences(before, other) == ['attribute units was "mm", is "m"']


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_every_difference_is_named_meaning_before_layout(tmp_path, zarr_format):
    before = text_of(tmp_path, zarr_format, {"scale_factor": 0.1})
    now = text_of(tmp_path, zarr_format, shape=(4, 8), chunks=(4, 3), dtype="int16", fill_value=-1)
    found = differences(before, now)
    assert found[:4] == [
        "shape was (4, 6), is (4, 8)",
        "dtype was float32, is int16",
        "fill_value was nan, is -1",
        "attribute scale_factor was 0.1, is not there",
    ]
    assert [words.split(" was ")[0] for words in found[4:5]] == ["chunks"]
    assert differences(before, now, MEANING) == found[:4]
    assert differences(before, now, ("shape",)) == found[:1]


def test_formats_differ_by_name(tmp_path):
    assert differences(text_of(tmp_path, 2), text_of(tmp_path, 3))[0] == "format was 2, is 3"


@pytest.mark.parametrize("name", ["long_name", "history", "valid_range", "grid_mapping"])
def test_attributes_that_change_no_value_are_not_kept(tmp_path, name):
    assert differences(text_of(tmp_path), text_of(tmp_path, 2, {name: "x"})) == []


def test_a_long_value_is_cut_in_words_but_compared_whole(tmp_path):
    long = "x" * 500
    (words,) = differences(text_of(tmp_path, 2, {"units": long + "a"}), text_of(tmp_path, 2, {"units": long + "b"}))
    assert words.startswith('attribute units was "xxx')
    assert len(words) < 450
