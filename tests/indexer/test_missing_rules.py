"""What counts as missing: one rule for both formats, for every role, and nothing taken for absent that is not."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr

from headrace.schemas.errors import ReadError, SourceError
from headrace.schemas.variables import rule_from_json
from indexing import build_inline, config, dataset, rows
from synthetic import write_attributes, write_store


def stat(out, variable, scope="global"):
    (row,) = rows(out, "stats", scope=scope, variable=variable)
    return row


def states(out, variable):
    return [row["state"] for row in rows(out, "chunks", variable=variable)]


@pytest.mark.parametrize(
    ("zarr_format", "fill", "dtype"),
    [(2, 0.0, "float32"), (3, 0.0, "float32"), (2, None, "float32"), (2, None, "int16")],
)
@pytest.mark.parametrize(
    ("policy", "count", "words"),
    [("valid_zero", 24, "absent chunks count as 0"), ("missing", 6, "absent chunks are missing")],
)
def test_zero_is_a_value_in_both_formats_and_absence_follows_the_policy(
    tmp_path, monkeypatch, zarr_format, fill, dtype, policy, count, words
):
    """A1, A2: one written chunk that holds a real 0, three absent ones, fill value 0, or none, which means 0."""
    store = write_store(
        tmp_path / "s.zarr",
        basins=4,
        steps=6,
        chunks=(2, 3),
        variables=("flow",),
        zarr_format=zarr_format,
        dtype=dtype,
        fill_value=fill,
        absent_chunks={"flow": [(0, 1), (1, 0), (1, 1)]},
    )
    zarr.open_group(str(store.path), mode="r+")["flow"][0, 1] = 0.0
    section = dataset(store, variables={"target": {"flow": "flow"}})
    report, _ = build_inline(config({"a": section}, missing={"absent_chunk": policy}), tmp_path / "i", monkeypatch)
    assert stat(tmp_path / "i", "flow")["count"] == count
    assert (stat(tmp_path / "i", "flow")["min"], states(tmp_path / "i", "flow")) == (0.0, ["data", *["absent"] * 3])
    (variable,) = rows(tmp_path / "i", "variables")
    assert words in variable["missing_rule"]
    assert ("format-2 fill 0 kept valid" in variable["missing_rule"]) == (zarr_format == 2 and fill is not None)
    (warning,) = [w for w in report.warnings if "not stored" in w]
    assert "target flow: 3 of 4 chunks are not stored and the fill value is 0" in warning
    assert f"absent_chunk: {policy}" in warning


def test_absent_chunks_can_be_refused(tmp_path, monkeypatch):
    """A2: with the policy error nothing is built, and the first chunk is named."""
    store = write_store(
        tmp_path / "s.zarr", basins=4, steps=6, chunks=(2, 3), fill_value=0.0, absent_chunks={"streamflow": [(1, 1)]}
    )
    settings = config({"a": dataset(store)}, missing={"absent_chunk": "error"})
    with pytest.raises(SourceError, match="chunks are not stored and their fill value is 0") as caught:
        build_inline(settings, tmp_path / "i", monkeypatch)
    assert "a, streamflow: 1 of 4, first streamflow/1.1" in str(caught.value)
    assert "valid_zero or missing" in str(caught.value)
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_absent_chunk_with_another_fill_value_is_missing_in_both_formats(tmp_path, monkeypatch, zarr_format):
    store = write_store(
        tmp_path / "s.zarr",
        basins=2,
        steps=6,
        chunks=(2, 3),
        zarr_format=zarr_format,
        fill_value=-999.0,
        absent_chunks={"streamflow": [(0, 0)]},
    )
    report, _ = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert stat(tmp_path / "i", "streamflow")["count"] == 6
    assert not [w for w in report.warnings if "not stored" in w]


def test_absent_inner_chunk_of_a_shard_is_missing_like_an_absent_chunk(tmp_path, monkeypatch):
    path = tmp_path / "s.zarr"
    store = write_store(path, basins=2, steps=8, zarr_format=3, chunks=(2, 2), shards=(2, 4), fill_value=-999.0)
    array = zarr.open_group(str(path), mode="r+")["streamflow"]
    array[:, 2:4] = -999.0  # zarr leaves the inner chunk out of its shard
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert stat(tmp_path / "i", "streamflow")["count"] == 12
    assert states(tmp_path / "i", "streamflow") == ["data", "data"]
    assert "fill -999 of a sharded array is missing" in rows(tmp_path / "i", "variables")[1]["missing_rule"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_packed_inputs_targets_and_statics_have_the_statistics_that_xarray_gives(tmp_path, monkeypatch, zarr_format):
    """A10, A11: int16 with scale, offset and flag in every role."""
    holes = np.zeros((3, 20), dtype=bool)
    holes[1, 4:9] = True
    packing = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 5.0, "missing_as": -32768.0, "fill_value": None}
    if zarr_format == 3:
        packing["fill_value"] = 0
    missing = {"precipitation": holes, "streamflow": holes}
    store = write_store(tmp_path / "s.zarr", zarr_format=zarr_format, missing=missing, **packing)
    attrs = {"slope": {"scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -1}}
    statics = write_attributes(
        tmp_path / "a.zarr", store.basin_ids, {"slope": np.array([3, -1, 8], dtype="i2")}, attrs=attrs
    )
    names = {
        "relevant": {"precipitation": "precipitation"},
        "target": {"streamflow": "streamflow"},
        "constant": {"slope": "slope"},
    }
    settings = config(
        {"a": dataset(store, attributes=str(statics), variables=names)}, missing={"static_missing": "impute"}
    )
    build_inline(settings, tmp_path / "i", monkeypatch)
    opened = xr.open_zarr(store.path, chunks=None, consolidated=False)
    for name in ("precipitation", "streamflow"):
        seen = opened[name].to_numpy().astype("f4").astype("f8")
        seen = seen[~np.isnan(seen)]
        found = stat(tmp_path / "i", name)
        assert found["count"] == seen.size == 55
        np.testing.assert_allclose([found["mean"], found["std"]], [seen.mean(), seen.std()], rtol=1e-12)
        rule = rule_from_json(
            next(r for r in rows(tmp_path / "i", "variables") if r["variable"] == name)["decode_rule"]
        )
        assert (rule.cf_scale, rule.cf_offset, rule.missing_values) == (0.01, 5.0, (-32768.0,))
    values = pq.read_table(tmp_path / "i" / "statics.parquet")["value"].to_numpy()
    np.testing.assert_array_equal(values, [2.5, np.nan, 5.0])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
def test_declared_flag_is_missing_and_an_undeclared_one_is_named(tmp_path, monkeypatch, zarr_format, attribute):
    """A8: -999 with an attribute, without one, and with missing_values."""
    holes = np.eye(3, 20, dtype=bool)

    def counted(name, flag_attribute, wanted):
        store = write_store(
            tmp_path / f"{name}.zarr",
            zarr_format=zarr_format,
            missing={"streamflow": holes},
            missing_as=-999.0,
            flag_attribute=flag_attribute,
        )
        section = dataset(store, variables={"target": {"streamflow": wanted}})
        report, _ = build_inline(config({"a": section}), tmp_path / f"i{name}", monkeypatch)
        return stat(tmp_path / f"i{name}", "streamflow"), report.warnings

    declared, warnings = counted("declared", attribute, "streamflow")
    assert (declared["count"], declared["min"] > 0, warnings) == (57, True, ())
    plain, warnings = counted("plain", None, "streamflow")
    assert (plain["count"], plain["min"]) == (60, -999.0)
    (warning,) = warnings
    assert "3 of 3 basins have -999 as smallest value" in warning
    assert "missing_values: [-999]" in warning
    configured, _ = counted("configured", None, {"physical": "streamflow", "missing_values": [-999]})
    assert configured["count"] == 57


def test_several_flags_in_one_attribute_all_count(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", attrs={"streamflow": {"missing_value": [-1.0, -2.0, "NaN"]}})
    array = zarr.open_group(str(store.path), mode="r+")["streamflow"]
    array[0, :2] = [-1.0, -2.0]
    build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert stat(tmp_path / "i", "streamflow")["count"] == 58


def test_attribute_that_is_no_number_is_refused_by_name(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", attrs={"streamflow": {"missing_value": "unknown"}})
    with pytest.raises(SourceError, match="attribute is not a number") as caught:
        build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert "array streamflow, attribute missing_value" in str(caught.value)
    assert "'unknown'" in str(caught.value)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("length", [0, 9])
def test_cut_or_empty_chunk_object_is_an_error_or_missing_but_never_absent(tmp_path, monkeypatch, zarr_format, length):
    """A14: the message names array, chunk key and byte length; with the policy missing only that chunk is lost."""
    store = write_store(
        tmp_path / "s.zarr", basins=4, steps=20, chunks=(2, 5), zarr_format=zarr_format, fill_value=float("nan")
    )
    key = "streamflow/1.2" if zarr_format == 2 else "streamflow/c/1/2"
    victim = store.path / key
    victim.write_bytes(victim.read_bytes()[:length])
    with pytest.raises(ReadError, match="chunk cannot be decoded") as caught:
        build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    assert f"array streamflow, {key} ({length} bytes)" in str(caught.value)
    assert "on_bad_chunk: missing" in str(caught.value)
    lenient = config({"a": dataset(store)}, missing={"on_bad_chunk": "missing"})
    report, _ = build_inline(lenient, tmp_path / "i", monkeypatch)
    assert states(tmp_path / "i", "streamflow") == [*["data"] * 6, "error", "data"]
    assert stat(tmp_path / "i", "streamflow")["count"] == 70
    assert any("1 chunks cannot be decoded" in w for w in report.warnings)
    # The lenient result is no answer to the strict question.
    with pytest.raises(ReadError):
        build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)


def test_valid_range_is_set_by_configuration_never_by_a_name(tmp_path, monkeypatch):
    """I10: -0.1 stays in q_obs as in Qtidal until valid_min says otherwise."""
    store = write_store(tmp_path / "s.zarr", variables=("q_obs", "Qtidal"))
    group = zarr.open_group(str(store.path), mode="r+")
    for name in store.variables:
        group[name][0, 0] = -0.1
    for bound, counts in ((None, (60, 60)), (0.0, (60, 59))):
        target = {"q_obs": "q_obs", "Qtidal": {"physical": "Qtidal", "valid_min": bound}}
        settings = config({"a": dataset(store, variables={"target": target})})
        build_inline(settings, tmp_path / "i", monkeypatch)
        assert tuple(stat(tmp_path / "i", n)["count"] for n in ("q_obs", "Qtidal")) == counts


def test_report_says_which_rule_each_variable_got(tmp_path, monkeypatch):
    """A1, A7: rules are named per variable, and float targets with fill value 0 are pointed out."""
    fills = {"precipitation": -5.0, "streamflow": 0.0}
    store = write_store(tmp_path / "s.zarr", fill_value=fills)
    report, _ = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    notes = "\n".join(report.notes)
    assert "missing rule [format-2 fill -5 is missing; absent chunks are missing]: a.precipitation" in notes
    assert "missing rule [format-2 fill 0 kept valid; absent chunks count as 0]: a.streamflow" in notes
    assert "reads as 0: target a.streamflow" in notes
