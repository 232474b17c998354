"""``~/hydro_setting.yml``: what it says is read, what it must not say aloud never appears."""

import traceback
from pathlib import Path

import pytest

from headrace.schemas.errors import ConfigError
from headrace.schemas.hydro_setting import read_hydro_setting, setting_path

KEY, SECRET = "AKIDEXAMPLE0", "5ecr3t-of-the-bucket"
WHOLE = f"""\
storage:
  default_source: cloud
  local: {{root: /data/hydro}}
  cache: data/cache
  s3:
    bucket: hydro-data
    prefix: zarr
    endpoint_url: https://oss-cn-beijing.aliyuncs.com
    access_key_id: {KEY}
    secret_access_key: {SECRET}
local_data_path: {{root: /old/style}}
"""


@pytest.fixture
def setting(tmp_path):
    """Read a text as the file."""

    def read(text):
        path = tmp_path / "hydro_setting.yml"
        path.write_text(text, encoding="utf-8")
        return read_hydro_setting(path)

    return read


def everything_said(error):
    """The error as any program may show it: with what it was raised from or after, too."""
    said = "".join(traceback.format_exception(error)) + repr(error)
    return said + "".join(everything_said(e) for e in (error.__cause__, error.__context__) if e is not None)


def test_says_where_stores_lie_and_tolerates_keys_of_others(setting):
    whole = setting(WHOLE)
    assert whole.storage.default_source == "cloud"
    assert whole.store_folder("local") == "/data/hydro"
    assert whole.store_folder("cloud") == "s3://hydro-data/zarr"
    assert whole.storage.s3.endpoint_url == "https://oss-cn-beijing.aliyuncs.com"
    assert whole.storage.s3.secret_access_key is not None
    assert whole.storage.s3.secret_access_key.get_secret_value() == SECRET


@pytest.mark.parametrize(
    ("s3", "folder"),
    [
        ("{bucket: b}", "s3://b/zarr"),
        ("{bucket: b, prefix: ''}", "s3://b"),
        ("{bucket: 's3://b/', prefix: /deep/er/}", "s3://b/deep/er"),
    ],
)
def test_prefix_is_where_hydrodataset_writes_unless_it_says_otherwise(setting, s3, folder):
    assert setting(f"storage: {{s3: {s3}}}").store_folder("cloud") == folder


def test_root_may_begin_at_home(setting):
    assert setting("storage: {local: {root: ~/hydro}}").store_folder("local") == str(Path("~/hydro").expanduser())


def test_secrets_show_in_no_repr_and_no_dump(setting):
    whole = setting(WHOLE)
    for text in (repr(whole), str(whole), str(whole.model_dump()), whole.model_dump_json(), repr(whole.storage.s3)):
        assert KEY not in text
        assert SECRET not in text


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "storage:\n", "storage:\n  local:\n  s3:\n", "other: 1\n"])
def test_empty_sections_say_nothing_and_the_missing_key_is_named(setting, text):
    empty = setting(text)
    assert empty.storage.default_source == "local"
    with pytest.raises(ConfigError, match=r"hydro_setting.yml, key storage.local.root"):
        empty.store_folder("local")
    with pytest.raises(ConfigError, match=r"hydro_setting.yml, key storage.s3.bucket"):
        empty.store_folder("cloud")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"storage: {{s3: {{secret_access_key: [{SECRET}]}}}}", r"key storage.s3.secret_access_key"),
        (f"storage: {{s3: {{access_key_id: 12, secret_access_key: {SECRET}}}}}", r"storage.s3.access_key_id"),
        (f"storage: {{s3: {{secret_access_key: {SECRET}}}}}", r"key storage.s3.access_key_id"),
        (f"storage: {{s3: {{access_key_id: {KEY}}}}}", r"key storage.s3.secret_access_key"),
        (f"storage: {{s3: {{endpoint_url: 'https://{KEY}:{SECRET}@host'}}}}", r"key storage.s3.endpoint_url"),
        (f"storage: {{s3: {{endpoint_url: 'https://{KEY}:a/{SECRET}@host'}}}}", r"without user name and password"),
        (f"storage: {{s3: {{endpoint_url: 'https://host/?key={SECRET}'}}}}", r"key storage.s3.endpoint_url"),
        (f"storage: {{s3: {{secret_access_key: *{SECRET}}}}}", r"not YAML at line 1"),
        (f"storage: {{s3: {{secret_access_key: !{SECRET} x}}}}", r"not YAML at line 1"),
        (f"storage:\n  s3:\n    secret_access_key: @{SECRET}\n", r"not YAML at line 3"),
        (f"storage:\n  s3: {SECRET}\n", r"key storage.s3"),
        (f"storage: {SECRET}", r"key storage"),
        (f"storage: {{default_source: {SECRET}}}", r"local or cloud"),
        (f"- {SECRET}", r"no mapping"),
    ],
)
def test_errors_name_file_and_key_and_never_a_value(setting, text, said):
    with pytest.raises(ConfigError, match=r"hydro_setting.yml") as caught:
        setting(text)
    assert caught.match(said)
    assert caught.value.exit_code == 2
    assert KEY not in everything_said(caught.value)
    assert SECRET not in everything_said(caught.value)


def test_relative_root_and_odd_endpoint_are_refused(setting):
    with pytest.raises(ConfigError, match=r"an absolute path"):
        setting("storage: {local: {root: data/hydro}}")
    with pytest.raises(ConfigError, match=r"begins with http://"):
        setting("storage: {s3: {endpoint_url: oss-cn-beijing.aliyuncs.com}}")


def test_environment_names_another_file(tmp_path, monkeypatch):
    monkeypatch.delenv("HYDRO_SETTING", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert setting_path() == tmp_path / "hydro_setting.yml"
    assert not read_hydro_setting().found
    (tmp_path / "other.yml").write_text("storage: {local: {root: /there}}", encoding="utf-8")
    monkeypatch.setenv("HYDRO_SETTING", str(tmp_path / "other.yml"))
    assert read_hydro_setting().store_folder("local") == "/there"
    monkeypatch.setenv("HYDRO_SETTING", str(tmp_path / "none.yml"))
    with pytest.raises(ConfigError, match=r"none.yml"):
        read_hydro_setting()
