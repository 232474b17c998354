"""Configuration files: the guide's runs unchanged, mistakes are named with their dotted path, nothing is lost."""

from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.config import Config
from headrace.schemas.config_io import config_digest, dump_config, is_url, load_config, parse_config
from headrace.schemas.errors import ConfigError

GUIDE = """\
datasets:
  camels_us:
    timeseries: stores/camels_us_timeseries.zarr
    attributes: s3://bucket/camels_us_attributes.zarr
    basins: [01013500, 54001]
    t_range_train: [1980-10-01, "2010-09-30"]
    t_range_valid: null
    variables:
      relevant: {precipitation: pcp_mm, temperature_max: {physical: airtemp_c_max, offset: 273.15, unit: K}}
      target:
        streamflow: {physical: q_cms_obs, missing_values: [-999], valid_min: 0, per_area: area_km2, unit: mm/day}
      constant: {area: area_km2}
"""


BASINS = "all, a list of ids, or a text file with one id a line"


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    path = tmp_path / "guide.yml"
    path.write_text(GUIDE, encoding="utf-8")
    return path


def basins_of(config: Config) -> Any:
    return config.datasets["camels_us"].basins


def mistake(*overrides: str) -> str:
    """Return the message that a configuration with this mistake gets."""
    data: Any = {"datasets": {"a": {"timeseries": "t.zarr", "basins": "all", "variables": {"target": {"q": "q"}}}}}
    with pytest.raises(ConfigError) as caught:
        parse_config(data, overrides=overrides)
    assert caught.value.exit_code == 2
    assert "pydantic" not in str(caught.value)
    return str(caught.value)


def test_guides_file_gives_ids_dates_and_numbers_as_written(guide: Path) -> None:
    config = load_config(guide)
    dataset = config.datasets["camels_us"]
    assert dataset.basins == ("01013500", "54001")
    assert dataset.period("train") == ("1980-10-01", "2010-09-30")
    assert dataset.variables.relevant["precipitation"].physical == "pcp_mm"
    assert dataset.variables.target["streamflow"].missing_values == (-999.0,)
    assert config.window.spec().length == 365


def test_store_paths_are_relative_to_the_file_and_urls_stay(guide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    dataset = load_config(guide).datasets["camels_us"]
    assert dataset.timeseries == str(guide.parent / "stores/camels_us_timeseries.zarr")
    assert dataset.attributes == "s3://bucket/camels_us_attributes.zarr"
    monkeypatch.chdir(guide.parent)
    assert load_config(guide.name).datasets["camels_us"] == dataset
    assert (
        load_config(guide, ["datasets.camels_us.timeseries=/x/t.zarr"]).datasets["camels_us"].timeseries == "/x/t.zarr"
    )
    assert is_url("s3://bucket/x")
    assert not is_url("/data/x.zarr")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("storag.anon=true", "unknown key storag: did you mean 'storage'?"),
        ("loss=mae", "unknown key loss: did you mean train.loss?"),
        ("window.strid=2", "unknown key window.strid: did you mean 'stride'?"),
        ("datasets.a.basin=all", "unknown key datasets.a.basin: did you mean 'basins'?"),
        ("datasets.a.basins={trian: all}", "unknown key datasets.a.basins.trian: did you mean 'train'?"),
        ("datasets.a.variables.targets={q: q}", "unknown key datasets.a.variables.targets: did you mean 'target'?"),
        (
            "datasets.a.variables.target={q: {physical: q, ofset: 1}}",
            "unknown key datasets.a.variables.target.q.ofset: did you mean 'offset'?",
        ),
        ("train.zzz=1", "unknown key train.zzz: valid keys: "),
    ],
)
def test_unknown_key_is_named_with_its_dotted_path_and_the_nearest_key(override: str, expected: str) -> None:
    where = f"--set {override.partition('=')[0]}"
    assert f"configuration is not valid (1 problem)\n  where:    {where}\n  - {expected}" in mistake(override)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("loader.batch_size=many", "loader.batch_size = 'many': expected a whole number"),
        (
            "loader.memory_budget=-5",
            "loader.memory_budget = -5: expected auto, a number of bytes, or text such as 2GiB",
        ),
        (
            "loader.memory_budget=2 gigs",
            "loader.memory_budget = '2 gigs': expected auto, a number of bytes, or text such as 2GiB",
        ),
        (
            "loader.device_memory_budget=all",
            "loader.device_memory_budget = 'all': expected a number of bytes, or text such as 8GiB, or null",
        ),
        ("datasets={}", "datasets = {}: expected at least one entry"),
        ("loader.num_workers=-1", "loader.num_workers = -1: expected auto or a whole number of at least 0"),
        (
            "datasets.a.basins=",
            f"datasets.a.basins = null: expected {BASINS}, or {{train: …, ",
        ),
        ("datasets.a.basins=true", f"datasets.a.basins = true: expected {BASINS}, or "),
        ("datasets.a.basins={train: 5}", f"datasets.a.basins.train = 5: expected {BASINS}"),
        ("datasets.a.basins={valid: null}", f"datasets.a.basins.valid = null: expected {BASINS}"),
        ("datasets.a.t_range_test=[2000-01-01]", "t_range_test = ['2000-01-01']: expected two dates, [first, last]"),
        (
            "datasets.a.t_range_train=1980",
            "datasets.a.t_range_train = 1980: expected two dates, [first, last], or ",
        ),
        ("datasets.a.variables.target=", "datasets.a.variables.target = null: expected a list of array names, or "),
        (
            "datasets.a.variables.target.q=",
            "variables.target.q = null: expected the name of an array, or ",
        ),
        (
            "loader.cache_limit=[1]",
            "cache_limit = [1]: expected a number of bytes, or text such as 20GiB, or ",
        ),
        ("missing.missing_policy=zero", "missing.missing_policy = 'zero': expected fill, fill_and_mask or drop"),
        ("train.amp=maybe", "train.amp = 'maybe': expected true, false, bf16 or fp16"),
        ("train.dropout=1", "train.dropout = 1: expected a number below 1"),
        ("train.clip_gradient_norm=x", "train.clip_gradient_norm = 'x': expected a number or null"),
        ("window=3", "window = 3: expected a mapping, key: value"),
        ("datasets.a.basins=[no, 1e5]", "datasets.a.basins = ['no', 100000.0]: basin id 100000.0 is not text"),
        ("datasets.a.timeseries=", "datasets.a.timeseries = null: expected text"),
        ("datasets.b.basins=all", "datasets.b.timeseries is missing"),
        ("datasets.a.variables.target={q: {physical: q, scale: 0}}", "scale must not be 0"),
        ("train.learning_rate_schedule={3: -1}", "train.learning_rate_schedule.3 = -1: expected a number above 0"),
        ("train.learning_rate_schedule={x: 1}", "learning_rate_schedule.x = 'x': expected a whole number as key"),
        ("window.warmup_length=365", "window = {'warmup_length': 365}: warmup_length must lie in [0, 365)"),
    ],
)
def test_bad_value_is_named_with_its_dotted_path_and_what_was_found(override: str, expected: str) -> None:
    message = mistake(override)
    assert "(1 problem)" in message
    assert "Input should" not in message
    assert expected in message.splitlines()[-1]


def test_every_basin_file_that_cannot_be_used_is_named(guide: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(guide, ["datasets.camels_us.basins={train: a.txt, test: b.txt}"])
    assert "2 basin files cannot be used" in str(caught.value)
    assert all(f"basins.{key}.txt" in str(caught.value) for key in ("train = a", "test = b"))


def test_all_mistakes_are_said_at_once() -> None:
    message = mistake("window.stride=0", "loader.batchsize=1", "datasets.a.weight=-1")
    assert "(3 problems)" in message
    assert all(part in message for part in ("window.stride = 0", "loader.batchsize", "datasets.a.weight = -1"))


@pytest.mark.parametrize(
    ("overrides", "where"),
    [
        (["loader.seed=1", "datasets.a.weight=-1"], "--set datasets.a.weight and config"),
        (["window.warmup_length=0", "window.strid=1", "loader.seed=2"], "--set window.strid"),
        (["window.stride=x"], "--set window.stride"),
        (["window={stride: x}"], "--set window"),
        (["window.hindcast_length=9"], "config and --set window.hindcast_length"),
        (["window=", "datasets.b.basins=all", "loader.seed=2"], "config and --set datasets.b.basins"),
    ],
)
def test_mistakes_are_said_to_be_where_they_were_made(overrides: list[str], where: str) -> None:
    data = {"datasets": {"a": {"timeseries": "t.zarr"}}, "window": {"warmup_length": 900}}
    with pytest.raises(ConfigError) as caught:
        parse_config(data, overrides=overrides)
    assert str(caught.value).splitlines()[1] == f"  where:    {where}"


def test_misplaced_secret_does_not_appear_in_the_message() -> None:
    assert "hunter2" not in mistake("storage.secret_access_key=hunter2")


@pytest.mark.parametrize("override", ["window.stride", "=5", "window.stride=[1", "datasets.a.timeseries.x=1"])
def test_unreadable_override_is_refused_as_written(override: str) -> None:
    assert f"--set {override}" in mistake(override)


def test_overrides_set_what_they_name_and_leave_the_callers_data_alone(guide: Path) -> None:
    config = load_config(guide, ["window.stride=2", "train.learning_rate=1e-3", "datasets.camels_us.basins=[01013500]"])
    assert (config.window.stride, config.train.learning_rate, basins_of(config)) == (2, 0.001, ("01013500",))
    data: dict[str, Any] = {"datasets": {"a": {"timeseries": "t"}}, "window": None}
    assert parse_config(data, overrides=["window.stride=3"]).window.stride == 3
    assert data == {"datasets": {"a": {"timeseries": "t"}}, "window": None}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"\xff\xfed\x00", "not UTF-8"),
        (b"datasets: [", "not valid YAML"),
        (b"a: 1\na: 2\n", "'a' appears twice"),
        (b"", "empty or not a mapping"),
        (b"- a\n", "empty or not a mapping"),
        (b"window: {stride: 1}\n", "datasets is missing"),
    ],
)
def test_unreadable_file_is_refused_by_name(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "c.yml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"(?s){message}") as caught:
        load_config(path)
    assert str(path) in str(caught.value)


def test_basin_file_may_have_blank_lines_crlf_bom_spaces_and_comments(guide: Path) -> None:
    (guide.parent / "ids.txt").write_bytes("\ufeff01013500  \r\n\r\n  é水\r\n# said to be bad\n54001".encode())
    config = load_config(guide, ["datasets.camels_us.basins=ids.txt"])
    assert basins_of(config) == ("01013500", "é水", "54001")
    config = load_config(guide, ["datasets.camels_us.basins={train: ids.txt, test: [01], valid: all}"])
    assert basins_of(config).model_dump() == {"train": ("01013500", "é水", "54001"), "test": ("01",), "valid": "all"}


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"\r\n # none\n", "holds no id"), (b"\xff\xfe0\x001\x00", "not UTF-8")],
)
def test_unusable_basin_file_is_refused_by_its_dotted_path(guide: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (guide.parent / "ids.txt").write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(guide, ["datasets.camels_us.basins={train: ids.txt}"])
    assert "datasets.camels_us.basins.train = ids.txt" in str(caught.value)


def test_dumped_configuration_loads_to_the_same_whole_and_digest(guide: Path, tmp_path: Path) -> None:
    config = load_config(
        guide, ["train.learning_rate_schedule={10: 5e-4}", "window.warmup_length=0", "loader.cache_dir=off"]
    )
    again = tmp_path / "elsewhere.yml"
    again.write_text(dump_config(config), encoding="utf-8")
    assert load_config(again) == config
    assert config_digest(load_config(again)) == config_digest(config)
    assert Config.model_validate(config.as_dict()) == config


def test_digest_changes_with_any_setting_and_not_with_spelling(guide: Path) -> None:
    plain = config_digest(load_config(guide))
    assert plain == config_digest(
        load_config(guide, ["window.stride=1", "datasets.camels_us.basins=['01013500', '54001']"])
    )
    changes = [
        "window.stride=2",
        "train.device=cpu",
        "datasets.camels_us.weight=2",
        "datasets.camels_us.variables.constant={}",
    ]
    assert len({plain, *(config_digest(load_config(guide, [change])) for change in changes)}) == 1 + len(changes)


def test_digest_leaves_out_defaults_and_how_bytes_are_reached(guide: Path) -> None:
    """A run stays usable when a later version has one more setting, and when its stores move to another endpoint."""
    plain = config_digest(load_config(guide))
    assert plain == config_digest(
        load_config(guide, ["storage.max_retries=3", "storage.endpoint_url=http://127.0.0.1:9"])
    )
    assert plain == config_digest(parse_config(load_config(guide).model_dump(mode="json", exclude_defaults=True)))


def test_digest_is_that_of_the_first_release() -> None:
    """A change here locks everybody out of the runs they have."""
    data = {"datasets": {"a": {"timeseries": "/b/c.zarr", "variables": {"target": ["q"]}}}, "window": {"stride": 3}}
    assert config_digest(parse_config(data)) == "85dfaafd0ea3baeb"


def test_digest_is_the_same_on_every_machine() -> None:
    config = parse_config({"datasets": {"a": {"timeseries": "s3://b/é.zarr"}}})
    assert config_digest(config) == config_digest(Config.model_validate(config.as_dict()))
    assert len(config_digest(config)) == 16
