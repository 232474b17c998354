"""Basin attributes: aligned by id, and a missing one is never passed on unsaid."""

import numpy as np
import pytest

from headrace.schemas.errors import ConfigError
from indexing import build_inline, config, dataset, rows
from synthetic import write_attributes, write_store


@pytest.fixture
def section(tmp_path):
    """I5: two basins with NaN attributes, one without a row, and rows of other basins."""
    store = write_store(tmp_path / "s.zarr", basins=["a", "b", "c", "d", "e"])
    extra = [f"x{i}" for i in range(158)]
    columns = {
        "slope": [np.nan, 5.0, 4.0, *np.zeros(158), 2.0],
        "forest": [np.nan, 0.5, np.nan, *np.zeros(158), 0.2],
    }
    attributes = write_attributes(tmp_path / "a.zarr", ["d", "c", "b", *extra, "a"], columns)
    names = {"target": {"streamflow": "streamflow"}, "constant": {"slope": "slope", "forest": "forest"}}
    return dataset(store, attributes=str(attributes), variables=names)


def test_missing_attributes_are_listed_by_basin_and_name(section, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="5 static values are missing") as caught:
        build_inline(config({"x": section}), tmp_path / "i", monkeypatch)
    message = str(caught.value)
    assert "b × forest, d × forest, d × slope, e × forest, e × slope" in message
    assert "static_missing: drop" in message
    assert not (tmp_path / "i").exists()


def test_dropped_basins_leave_the_data_set_and_are_named(section, tmp_path, monkeypatch):
    settings = config({"x": section}, missing={"static_missing": "drop"})
    report, _ = build_inline(settings, tmp_path / "i", monkeypatch)
    assert [r["basin_id"] for r in rows(tmp_path / "i", "basins")] == ["a", "c"]
    values = {r["variable"]: r["value"] for r in rows(tmp_path / "i", "statics", basin=1)}
    assert values == {"slope": 5.0, "forest": 0.5}
    assert "datasets.x: 3 basins left out, because a static value is missing: b, d, e" in report.warnings
    assert {r["basin"] for r in rows(tmp_path / "i", "windows")} == {0, 1}


def test_imputed_attributes_stay_missing_in_the_table(section, tmp_path, monkeypatch):
    build_inline(config({"x": section}, missing={"static_missing": "impute"}), tmp_path / "i", monkeypatch)
    values = [r["value"] for r in rows(tmp_path / "i", "statics", variable="slope")]
    np.testing.assert_array_equal(values, [2.0, 4.0, 5.0, np.nan, np.nan])
    (stat,) = rows(tmp_path / "i", "stats", scope="global", variable="slope")
    assert (stat["count"], stat["mean"]) == (3, 11 / 3)


def test_dropping_every_basin_is_refused(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", basins=["a", "b"])
    attributes = write_attributes(tmp_path / "a.zarr", ["x"], {"slope": [1.0]})
    names = {"target": {"streamflow": "streamflow"}, "constant": {"slope": "slope"}}
    section = dataset(store, attributes=str(attributes), variables=names)
    with pytest.raises(ConfigError, match="no basin has all its static values"):
        build_inline(config({"x": section}, missing={"static_missing": "drop"}), tmp_path / "i", monkeypatch)


def test_area_of_zero_counts_as_missing(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", basins=["a", "b"], attrs={"streamflow": {"units": "m3/s"}})
    attributes = write_attributes(tmp_path / "a.zarr", ["a", "b"], {"area": [0.0, 1.0]}, {"area": "km2"})
    depth = {"physical": "streamflow", "per_area": "area", "unit": "mm/day"}
    section = dataset(store, attributes=str(attributes), variables={"target": {"streamflow": depth}})
    with pytest.raises(ConfigError, match="a × @area:area"):
        build_inline(config({"x": section}), tmp_path / "i", monkeypatch)
    build_inline(config({"x": section}, missing={"static_missing": "impute"}), tmp_path / "i", monkeypatch)
    assert [r["count"] for r in rows(tmp_path / "i", "stats", scope="basin")] == [0, 20]
