"""A configuration of the guide's shape is indexed as it is, and what docs/moving-over.md names is there or is not."""

import re
from pathlib import Path

import numpy as np
import pytest

from command_line import run_headrace
from headrace.loader.catalog import open_index
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError
from synthetic import write_attributes, write_store
from tree import REPOSITORY

GUIDE = """\
datasets:
  camels_us:
    timeseries: stores/camels_us_timeseries.zarr
    attributes: stores/camels_us_attributes.zarr
    basins: all
    t_range_train: ["2000-10-01", "2001-09-30"]
    t_range_valid: null
    t_range_test: ["2001-10-01", "2001-12-31"]
    variables:
      relevant:
        precipitation: pcp_mm
        temperature_max: {physical: airtemp_c_max, scale: 1.0, offset: 273.15, unit: K}
      target:
        streamflow: {physical: q_cms_obs, missing_values: [-999], valid_min: 0, per_area: area_km2, unit: mm/day}
      constant: {area: area_km2}
    weight: 1.0
"""

PAGE = (REPOSITORY / "docs" / "moving-over.md").read_text(encoding="utf-8")


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_guides_configuration_is_indexed_as_it_is(tmp_path):
    arrays = ("pcp_mm", "airtemp_c_max", "q_cms_obs")
    units = {"pcp_mm": {"units": "mm/day"}, "airtemp_c_max": {"units": "degC"}, "q_cms_obs": {"units": "m^3/s"}}
    path = tmp_path / "stores" / "camels_us_timeseries.zarr"
    store = write_store(path, basins=2, steps=731, variables=arrays, fill_value=0.0, attrs=units)
    attributes = tmp_path / "stores" / "camels_us_attributes.zarr"
    write_attributes(attributes, store.basin_ids, {"area_km2": np.array([10.0, 20.0])}, {"area_km2": "km2"})
    (tmp_path / "guide.yml").write_text(GUIDE, encoding="utf-8")
    outcome = run_headrace("build-index", tmp_path / "guide.yml", "--out", tmp_path / "index")
    assert outcome.code == 0, outcome.err
    with open_index(tmp_path / "index") as index:
        counts = {split: sum(index.windows(split).column("num_windows").to_pylist()) for split in ("train", "test")}
        means = {row["variable"]: row["mean"] for row in index.stats().to_pylist() if row["scope"] == "global"}
    # Days of target that 364 days of record precede: from 2000-12-30 on.
    assert counts == {"train": 2 * 275, "test": 2 * 92}
    period = slice(274, 274 + 365)
    flow = store.truth["q_cms_obs"][:, period] * 86.4 / np.array([[10.0], [20.0]])
    assert means["temperature_max"] == pytest.approx(store.truth["airtemp_c_max"][:, period].mean() + 273.15, rel=1e-6)
    assert means["streamflow"] == pytest.approx(flow.mean(), rel=1e-6)


def test_tests_that_the_page_names_are_there():
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    there = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, flags=re.MULTILINE)}
    assert len(named) > 15
    assert named - {"test_same_windows"} <= there


def test_flags_that_the_page_names_are_there():
    known = set(re.findall(r"--[a-z-]+", run_headrace("train", "--help").out))
    named = set(re.findall(r"`(--[a-z-]+)`", section("Flags of `train`")))
    assert named <= known
    assert len(named) > 18


def test_settings_that_the_page_names_are_there():
    rows = re.findall(r"^\| .* \| (.*) \|$", section("Settings"), flags=re.MULTILINE)[2:]
    dotted = {name for row in rows for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", row)}
    assert len(dotted) > 12
    for name in sorted(dotted):
        nested = name.replace("datasets.id.", "datasets.one.")
        with pytest.raises(ConfigError) as caught:
            parse_config(
                {"datasets": {"one": {"timeseries": "t.zarr"}}}, overrides=[f"{nested}={{never: {{never: this}}}}"]
            )
        assert f"unknown key {nested}:" not in str(caught.value), name
