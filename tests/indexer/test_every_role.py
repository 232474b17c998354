"""Odd values mean the same as input, as target and as static, in the tables and in the batches."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr

import headrace
from build_here import build_here
from headrace.objects.fetch import FileFetch
from headrace.schemas.config import Config
from headrace.schemas.errors import ReadError, SourceError
from indexing import build_inline, config, rows
from synthetic_coords import write_ids, write_vector

ROLES = ("input", "target", "static")
BASINS, STEPS, CHUNK = 6, 4, 2
NAN = float("nan")
VALUES = [0.0, 3.0, 2.0, 7.0, 5.0, 1.0]
LOST = [0.0, 3.0, NAN, NAN, 5.0, 1.0]
"""VALUES without the chunk in the middle."""

each = pytest.mark.parametrize("role", ROLES)
each_format = pytest.mark.parametrize("zarr_format", [2, 3])


def put(
    folder: Path, role: str, values: Any, *, zarr_format: int = 2, attrs: Any = None, odd: int = 0, **array: Any
) -> dict[str, Any]:
    """Write a data set in which ``odd`` has one value per basin, in three chunks; return its section."""
    values = np.asarray(values)
    for name in ("series", "statics"):
        group = zarr.open_group(str(folder / f"{name}.zarr"), mode="w", zarr_format=2 if zarr_format == 2 else 3)
        write_ids(group, "basin", [f"b{i}" for i in range(BASINS)], "str")
        made: dict[str, Any] = {"plain": (np.arange(1.0, BASINS + 1, dtype="f4"), {}, {})}
        if (role == "static") == (name == "statics"):
            made["odd"] = (values, array, dict(attrs or {}))
        if name == "series":
            write_vector(group, "time", np.arange(STEPS), {"units": "days since 2000-01-01"})
        for key, (column, options, notes) in made.items():
            _write(group, key, column, notes, time=name == "series", odd=odd if key == "odd" else 0, **options)
    sections = {"input": "relevant", "target": "target", "static": "constant"}
    names = {section: {f"plain_{section}": "plain"} for section in sections.values()}
    names[sections[role]] = {"odd": "odd"}
    return {
        "timeseries": str(folder / "series.zarr"),
        "attributes": str(folder / "statics.zarr"),
        "t_range_train": ["2000-01-01", "2000-01-04"],
        "variables": names,
    }


def _write(group: Any, name: str, column: np.ndarray, attrs: Any, *, time: bool, odd: int, **options: Any) -> None:
    dims = ["basin", "time"] if time else ["basin"]
    whole = np.repeat(column[:, None], STEPS, axis=1) if time else column
    dims, whole = dims + ["extra"] * odd, whole.reshape(whole.shape + (1,) * odd)
    text = whole.dtype.kind in "UO"
    zarr_format = group.metadata.zarr_format
    array = group.create_array(
        name,
        shape=whole.shape,
        chunks=(CHUNK, *whole.shape[1:]),
        dtype=options.pop("dtype", "str" if text else whole.dtype),
        dimension_names=dims if zarr_format == 3 else None,
        attributes={**attrs, **({"_ARRAY_DIMENSIONS": dims} if zarr_format == 2 else {})},
        **options,
    )
    array[:] = whole.astype(object) if text else whole


def middle_chunk(section: dict[str, Any], role: str, zarr_format: int) -> Path:
    """Return the file of the chunk in the middle."""
    index = (1,) if role == "static" else (1, 0)
    parts = [".".join(map(str, index))] if zarr_format == 2 else ["c", *map(str, index)]
    return Path(section["attributes" if role == "static" else "timeseries"]).joinpath("odd", *parts)


def settings_of(section: dict[str, Any], **missing: Any) -> Config:
    policies = {"target_nan_policy": "keep", "missing_policy": "fill_and_mask", "static_missing": "impute", **missing}
    window = {"hindcast_length": 1, "forecast_length": 0, "warmup_length": 0}
    return config({"a": section}, window=window, missing=policies, normalization={"method": "none"})


def check(folder: Path, role: str, settings: Config, expected: list[float]) -> Path:
    """Hold the values in the tables, and in the batches, to the expected ones."""
    index = build_here(settings, folder / "index")
    if role == "static":
        in_tables = [r["value"] for r in rows(index, "statics", variable="odd")]
    else:
        found = rows(index, "stats", scope="basin", variable="odd")
        in_tables = [r["mean"] if r["count"] == STEPS else NAN for r in found]
        assert all(r["count"] in (0, STEPS) for r in found)
    np.testing.assert_allclose(in_tables, expected, rtol=1e-6)
    with headrace.open_index(index) as opened, headrace.WindowLoader(opened, "train", num_workers=1) as loader:
        (batch,) = list(loader)
    assert len(batch) == BASINS * STEPS
    columns = {"input": batch.x[:, 0], "target": batch.y[:, 0, 0], "static": batch.static}
    served = columns[role]
    if role != "target":
        served = torch.where(served[:, 1] == 1, torch.nan, served[:, 0])
    np.testing.assert_allclose(served.numpy(), np.array(expected, "f4")[batch.basin.numpy()], rtol=1e-6)
    return index


@each
@each_format
@pytest.mark.parametrize(("policy", "middle"), [("valid_zero", 0.0), ("missing", NAN)])
def test_zero_is_a_value_and_absence_follows_the_policy(tmp_path, role, zarr_format, policy, middle):
    """A1, A2."""
    section = put(tmp_path, role, np.array(VALUES, "f4"), zarr_format=zarr_format, fill_value=0)
    middle_chunk(section, role, zarr_format).unlink()
    check(tmp_path, role, settings_of(section, absent_chunk=policy), [0.0, 3.0, middle, middle, 5.0, 1.0])


@each
@each_format
def test_absent_chunk_with_fill_0_can_be_refused_and_is_said_otherwise(tmp_path, monkeypatch, role, zarr_format):
    """A2, A7."""
    section = put(tmp_path, role, np.array(VALUES, "f4"), zarr_format=zarr_format, fill_value=0)
    chunk = middle_chunk(section, role, zarr_format)
    chunk.unlink()
    with pytest.raises(SourceError, match="chunks are not stored and their fill value is 0") as caught:
        build_inline(settings_of(section, absent_chunk="error"), tmp_path / "i", monkeypatch)
    assert f"a, odd: 1 of 3, first {str(chunk).rpartition('.zarr/')[2]}" in str(caught.value)
    report, _ = build_inline(settings_of(section), tmp_path / "i", monkeypatch)
    assert any(w.startswith(f"a, {role} odd: 1 of 3 chunks are not stored") for w in report.warnings)


@each
@each_format
@pytest.mark.parametrize("fill", [-5.0, NAN])
def test_absent_chunk_with_another_fill_is_missing(tmp_path, role, zarr_format, fill):
    """A2."""
    section = put(tmp_path, role, np.array(VALUES, "f4"), zarr_format=zarr_format, fill_value=fill)
    middle_chunk(section, role, zarr_format).unlink()
    check(tmp_path, role, settings_of(section), LOST)


@each
@pytest.mark.parametrize(
    ("zarr_format", "attribute", "dtype"),
    [
        (2, "_FillValue", "f4"),
        (3, "_FillValue", "i2"),
        (2, "missing_value", "i4"),
        (3, "missing_value", "f8"),
        (2, None, "i2"),
        (3, None, "f4"),
    ],
)
def test_flag_is_missing_whether_declared_or_configured(tmp_path, role, zarr_format, attribute, dtype):
    """A8, A11: integers and floats."""
    flagged = np.where(np.isnan(LOST), -999, LOST).astype(dtype)
    attrs = {attribute: -999} if attribute else {}
    section = put(tmp_path, role, flagged, zarr_format=zarr_format, attrs=attrs, fill_value=0)
    if attribute is None:
        names = section["variables"][{"input": "relevant", "target": "target", "static": "constant"}[role]]
        names["odd"] = {"physical": "odd", "missing_values": [-999]}
    check(tmp_path, role, settings_of(section), LOST)


@each
@each_format
def test_packed_integers_are_unpacked_in_float64_after_the_flag_is_tested(tmp_path, role, zarr_format):
    """A10, A11."""
    raw = np.array([0, 3, -32768, -32768, 500, 12345], "i2")
    attrs = {"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    section = put(tmp_path, role, raw, zarr_format=zarr_format, attrs=attrs, fill_value=0)
    wanted = np.where(raw == -32768, np.nan, np.float32(raw * 0.01 + 273.15)).tolist()
    check(tmp_path, role, settings_of(section), wanted)


@each
@pytest.mark.parametrize("dtype", ["u1", "i8", ">f4", "f2"])
def test_every_number_type_is_read(tmp_path, role, dtype):
    """A10."""
    section = put(tmp_path, role, np.array(VALUES).astype(dtype), fill_value=0)
    check(tmp_path, role, settings_of(section), VALUES)


@each
@each_format
def test_further_dimension_of_length_one_is_dropped(tmp_path, role, zarr_format):
    """C3."""
    section = put(tmp_path, role, np.array(VALUES, "f4"), zarr_format=zarr_format, odd=1, fill_value=0)
    check(tmp_path, role, settings_of(section), VALUES)


@each
@each_format
@pytest.mark.parametrize("length", [0, 5])
def test_cut_chunk_is_an_error_or_missing_in_both_phases(tmp_path, monkeypatch, role, zarr_format, length):
    """A14."""
    section = put(tmp_path, role, np.array(VALUES, "f4"), zarr_format=zarr_format, fill_value=0)
    chunk = middle_chunk(section, role, zarr_format)
    chunk.write_bytes(chunk.read_bytes()[:length])
    with pytest.raises(ReadError, match="chunk cannot be decoded") as caught:
        build_inline(settings_of(section), tmp_path / "i", monkeypatch)
    assert "array odd" in str(caught.value)
    assert f"({length} bytes)" in str(caught.value)
    check(tmp_path, role, settings_of(section, on_bad_chunk="missing"), LOST)


@each
@pytest.mark.parametrize(
    ("zarr_format", "fault"),
    [(2, TimeoutError("late")), (3, PermissionError(13, os.strerror(13))), (2, OSError(5, os.strerror(5)))],
)
def test_fault_on_the_way_is_neither_absent_nor_missing(tmp_path, monkeypatch, role, zarr_format, fault):
    """A3, A5: whatever on_bad_chunk says, because reading again may well succeed."""
    section = put(tmp_path, role, np.array(VALUES, "f4"), zarr_format=zarr_format, fill_value=0)
    chunk = middle_chunk(section, role, zarr_format)
    original = FileFetch.data

    def data(fetch: FileFetch, key: str) -> Any:
        if str(chunk).endswith(key):
            raise fault
        return original(fetch, key)

    with monkeypatch.context() as patch:
        patch.setattr(FileFetch, "data", data)
        with pytest.raises(ReadError, match="chunk cannot be read") as caught:
            build_inline(settings_of(section, on_bad_chunk="missing"), tmp_path / "index", monkeypatch)
    assert str(chunk).rpartition(".zarr/")[2] in str(caught.value)
    assert not (tmp_path / "index" / "manifest.json").exists()
    check(tmp_path, role, settings_of(section), VALUES)


@each
@pytest.mark.parametrize(("values", "kind"), [(np.array(list("abcdef")), "text"), (np.ones(6, bool), "bool")])
def test_what_is_no_number_is_refused_by_name(tmp_path, monkeypatch, role, values, kind):
    section = put(tmp_path, role, values)
    with pytest.raises(SourceError, match="array is not numeric") as caught:
        build_inline(settings_of(section), tmp_path / "i", monkeypatch)
    assert "array odd" in str(caught.value)
    assert ("coded as numbers first" in str(caught.value)) == (role == "static")


@each
def test_sign_that_only_an_attribute_tells_is_refused(tmp_path, monkeypatch, role):
    section = put(tmp_path, role, np.array(VALUES).astype("i1"), attrs={"_Unsigned": "true"}, fill_value=0)
    with pytest.raises(SourceError, match="unsigned by attribute only") as caught:
        build_inline(settings_of(section), tmp_path / "i", monkeypatch)
    assert "array odd" in str(caught.value)
