"""What a configuration leaves out is filled from presets and ``~/hydro_setting.yml``."""

import pytest

from headrace.schemas.config_io import dump_config, load_config, parse_config
from headrace.schemas.errors import ConfigError


@pytest.fixture(autouse=True)
def setting(tmp_path, monkeypatch):
    """Write the settings file; without a call it says where stores lie on both sides."""
    path = tmp_path / "hydro_setting.yml"
    monkeypatch.setenv("HYDRO_SETTING", str(path))

    def write(text):
        path.write_text(text, encoding="utf-8")

    write("storage: {local: {root: /data/hydro}, s3: {bucket: hydro-data, prefix: zarr}}")
    return write


def arrays(variables):
    return {name: variable.physical for name, variable in variables.items()}


def test_an_id_alone_is_a_whole_data_set():
    config = parse_config({"datasets": {"camels_us": None}})
    dataset = config.datasets["camels_us"]
    assert dataset.timeseries == "/data/hydro/camels_us_timeseries.zarr"
    assert dataset.attributes == "/data/hydro/camels_us_attributes.zarr"
    assert arrays(dataset.variables.relevant) == {
        "precipitation": "pcp_mm",
        "temperature_max": "airtemp_c_max",
        "temperature_min": "airtemp_c_min",
        "solar_radiation": "solrad_wm2",
        "potential_evapotranspiration": "PET",
    }
    assert arrays(dataset.variables.target) == {"streamflow": "q_cms_obs"}
    assert dataset.variables.target["streamflow"].unit == "m^3/s"
    statics = arrays(dataset.variables.constant)
    assert statics["area"] == "area_km2"
    assert len(statics) == 18
    assert not {"huc_02", "geol_1st_class", "geol_2nd_class", "dom_land_cover"} & set(statics)
    assert dataset.t_range_train == ("1980-01-01", "2000-12-30")
    assert dataset.t_range_valid == ("2000-12-31", "2007-12-31")
    assert dataset.t_range_test == ("2008-01-01", "2014-12-31")


def test_an_id_alone_does_not_show_the_model_the_mean_flow():
    variables = parse_config({"datasets": {"camels_pe": None}}).datasets["camels_pe"].variables
    assert "p_mean" in variables.constant
    assert "q_mean" not in variables.constant


def test_mean_temperature_stands_in_where_a_preset_has_no_largest():
    config = parse_config({"datasets": {"camels_gb": None}})
    assert list(config.datasets["camels_gb"].variables.relevant) == [
        "precipitation", "temperature_mean", "solar_radiation", "potential_evapotranspiration",
    ]  # fmt: skip


def test_a_list_of_standard_names_is_resolved_and_other_names_are_arrays():
    variables = {
        "relevant": ["precipitation", "temperature_max", "dayl"],
        "target": ["streamflow"],
        "constant": ["area", "gauge_lat", "aridity"],
    }
    dataset = parse_config({"datasets": {"camels_us": {"variables": variables}}}).datasets["camels_us"]
    assert arrays(dataset.variables.relevant) == {
        "precipitation": "pcp_mm", "temperature_max": "airtemp_c_max", "dayl": "dayl",
    }  # fmt: skip
    assert dataset.variables.relevant["temperature_max"].unit == "°C"
    assert dataset.variables.relevant["dayl"].unit is None
    assert arrays(dataset.variables.constant) == {"area": "area_km2", "gauge_lat": "lat", "aridity": "aridity"}


def test_mappings_and_data_sets_without_preset_are_left_as_they_are(tmp_path):
    given = {
        "timeseries": "mine.zarr",
        "t_range_test": ["2000-01-01", "2000-12-31"],
        "variables": {"relevant": {"precipitation": "prcp_maurer"}, "target": {"streamflow": "q"}},
    }
    mine = {**given, "variables": {"relevant": ["precipitation"], "target": ["streamflow"]}}
    config = parse_config({"datasets": {"camels_us": given, "mine": mine}}, base=tmp_path)
    known, own = config.datasets["camels_us"], config.datasets["mine"]
    assert known.timeseries == str(tmp_path / "mine.zarr")
    assert known.attributes is None
    assert arrays(known.variables.relevant) == {"precipitation": "prcp_maurer"}
    assert known.variables.relevant["precipitation"].unit is None
    assert known.variables.constant == {}
    assert known.t_range_train is None
    assert arrays(own.variables.relevant) == {"precipitation": "precipitation"}


def test_a_name_without_usual_source_is_refused_with_its_arrays():
    data = {"datasets": {"camels_aus": {"variables": {"relevant": ["relative_humidity"]}}}}
    with pytest.raises(ConfigError, match=r"datasets.camels_aus.variables.relevant") as caught:
        parse_config(data)
    assert caught.match("rh__silo_tmax")


def test_source_chooses_folder_or_bucket(setting):
    uris = {
        source: parse_config({"datasets": {"camels": None}, "storage": {"source": source}}).datasets["camels"]
        for source in ("local", "cloud")
    }
    assert uris["local"].timeseries == "/data/hydro/camelsus_timeseries.zarr"
    assert uris["cloud"].timeseries == "s3://hydro-data/zarr/camelsus_timeseries.zarr"
    assert uris["cloud"].attributes == "s3://hydro-data/zarr/camelsus_attributes.zarr"
    setting("storage: {default_source: cloud, s3: {bucket: other, prefix: a/b}}")
    assert parse_config({"datasets": {"camels": None}}).datasets["camels"].timeseries.startswith("s3://other/a/b/")


def test_relative_names_lie_in_the_bucket_when_the_cloud_is_chosen_and_only_then(setting, tmp_path):
    given = {"timeseries": "stores/q.zarr", "attributes": "/abs/a.zarr"}
    chosen = parse_config({"datasets": {"mine": given}, "storage": {"source": "cloud"}}, base=tmp_path)
    assert chosen.datasets["mine"].timeseries == "s3://hydro-data/zarr/stores/q.zarr"
    assert chosen.datasets["mine"].attributes == "/abs/a.zarr"
    setting("storage: {default_source: cloud, s3: {bucket: other}}")
    default = parse_config({"datasets": {"mine": given}}, base=tmp_path)
    assert default.datasets["mine"].timeseries == str(tmp_path / "stores/q.zarr")


def test_stores_of_an_unknown_id_are_named_after_it_where_the_file_says_where(setting):
    mine = {"variables": {"relevant": ["rain"], "target": ["flow"]}}
    config = parse_config({"datasets": {"mine": mine}})
    assert config.datasets["mine"].timeseries == "/data/hydro/mine_timeseries.zarr"
    assert config.datasets["mine"].attributes == "/data/hydro/mine_attributes.zarr"
    setting("storage: {}")
    with pytest.raises(ConfigError, match=r"datasets.mine.timeseries is missing"):
        parse_config({"datasets": {"mine": mine}})
    with pytest.raises(ConfigError, match=r"key storage.local.root"):
        parse_config({"datasets": {"camels_us": None}})


def test_joint_data_sets_agree_on_variables_and_unit_of_flow():
    config = parse_config({"datasets": {"camels_us": None, "caravan": None, "camels_gb": None}})
    names = [set(arrays(d.variables.relevant)) for d in config.datasets.values()]
    assert names[0] == names[1] == names[2]
    assert "temperature_mean" in names[0]
    assert not config.datasets["camels_us"].variables.relevant["temperature_mean"].required
    assert config.datasets["camels_gb"].variables.relevant["temperature_mean"].physical == "airtemp_C_mean"
    flows = {name: dataset.variables.target["streamflow"] for name, dataset in config.datasets.items()}
    assert {name: flow.unit for name, flow in flows.items()} == dict.fromkeys(flows, "mm/day")
    assert [flow.per_area for flow in flows.values()] == ["area_km2", None, "area_km2"]
    assert set(config.datasets["camels_gb"].variables.constant) == set(config.datasets["camels_us"].variables.constant)


@pytest.mark.parametrize("dataset_id", ["estreams", "arcade"])
def test_presets_without_flow_or_series_ask_for_arrays(dataset_id):
    with pytest.raises(ConfigError, match=rf"datasets.{dataset_id}.variables"):
        parse_config({"datasets": {dataset_id: None}})


def test_what_was_filled_in_is_resolved_again_to_the_same(setting, tmp_path):
    config = parse_config({"datasets": {"camels_us": None, "caravan": None}})
    (tmp_path / "run.yml").write_text(dump_config(config), encoding="utf-8")
    setting("storage: {s3: {bucket: gone}}")
    assert load_config(tmp_path / "run.yml") == config


@pytest.mark.parametrize(
    "datasets", [[], "camels_us", {"camels_us": 3}, {"camels_us": {"variables": 3}}, {"camels_us": {"variables": [1]}}]
)
def test_what_is_no_configuration_is_left_to_the_check(datasets):
    with pytest.raises(ConfigError, match=r"configuration is not valid"):
        parse_config({"datasets": datasets})
