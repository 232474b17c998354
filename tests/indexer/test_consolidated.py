"""A check says where a consolidated copy of the metadata is not what the arrays say; nothing goes by the copy."""

import json
import warnings

import numpy as np
import pytest
import zarr

from headrace.indexer.check import check_config
from indexing import config, dataset
from synthetic import write_store


def remarks(store, **sections):
    """Return what a check says of consolidated metadata."""
    found = check_config(config({"a": dataset(store)}, **sections)).inventory.remarks
    return [remark for remark in found if "consolidated" in remark]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("layout", [{}, {"fill_value": np.nan, "dtype": "float64"}, {"id_dtype": "U"}])
def test_a_copy_that_is_right_is_no_matter(tmp_path, zarr_format, layout):
    store = write_store(tmp_path / "s.zarr", zarr_format=zarr_format, consolidated=True, **layout)
    assert remarks(store) == []


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_changed_since_the_copy_is_named(tmp_path, zarr_format):
    """C11: an append, and a new missing value."""
    store = write_store(tmp_path / "s.zarr", basins=2, steps=20, zarr_format=zarr_format, consolidated=True)
    group = zarr.open_group(str(store.path), mode="r+", use_consolidated=False)
    for name in (*store.variables, "time"):
        array = group[name]
        array.resize((*array.shape[:-1], 30))
    group["time"][20:] = np.arange(20, 30)
    group["streamflow"].attrs["missing_value"] = -1.0
    (said,) = remarks(store)
    assert said.startswith(f"{store.path}: consolidated metadata are stale and not used here; array ")
    assert "array time: shape was (20), is (30)" in said
    assert "array streamflow: shape was (2, 20), is (2, 30); array streamflow: attribute missing_value was not" in said


@pytest.mark.parametrize("content", ["{", "[]", '{"metadata": {"time/.zarray": 1}}'])
def test_a_copy_that_cannot_be_read_stops_nothing(tmp_path, content):
    store = write_store(tmp_path / "s.zarr", consolidated=True)
    (store.path / ".zmetadata").write_text(content)
    (said,) = remarks(store)
    assert "it cannot be read" in said


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_copy_in_a_bucket_is_looked_at_as_well(bucket, tmp_path, zarr_format):
    store = write_store(tmp_path / "s.zarr", zarr_format=zarr_format)
    group = zarr.open_group(str(store.path), mode="r+")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        zarr.consolidate_metadata(group.store)
    group["streamflow"].attrs["units"] = "mm/d"
    data = config({"a": dataset(store)}).as_dict()
    data["datasets"]["a"]["timeseries"] = bucket.upload(store.path)
    found = check_config(config(data["datasets"], storage=bucket.storage.model_dump())).inventory.remarks
    assert [json.dumps("mm/d") in remark for remark in found if "consolidated" in remark] == [True]
