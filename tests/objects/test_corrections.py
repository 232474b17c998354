"""A message names what led to the wrong place: a URL's lost slash, the file of settings, missing credentials."""

from pathlib import Path

import pytest

from headrace.index_place import index_path
from headrace.objects.connection import Address
from headrace.objects.faults import Fault, Kind
from headrace.objects.refusals import refusal
from headrace.open_store import open_group
from headrace.schemas.errors import ConfigError, StoreNotFoundError


def test_a_url_with_one_slash_is_no_path(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"(?s)--out: s3:/bucket/index.*write s3://bucket/index"):
        index_path("s3:/bucket/index", where="--out")
    with pytest.raises(StoreNotFoundError, match=r"two slashes: s3://bucket/a\.zarr"):
        open_group(f"{tmp_path}/s3:/bucket/a.zarr")


def test_a_folder_of_the_settings_file_is_named_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    setting = tmp_path / "setting.yml"
    setting.write_text(f"storage: {{local: {{root: {tmp_path}/stores}}}}")
    monkeypatch.setenv("HYDRO_SETTING", str(setting))
    with pytest.raises(StoreNotFoundError, match=rf"storage\.local\.root in {setting}"):
        open_group(f"{tmp_path}/stores/a.zarr")
    with pytest.raises(StoreNotFoundError, match=r"correct the path in the configuration$"):
        open_group(f"{tmp_path}/other/a.zarr")


def test_who_gave_no_credentials_is_not_told_to_check_them():
    said = refusal(
        Fault(kind=Kind.DENIED, reason="HTTP status 403", answered=True), action="GET", url="s3://bucket/a",
        address=Address(endpoint="http://here", region="r", virtual=False), credentials=None, tries=1, seconds=0.0,
    )  # fmt: skip
    assert "leave out storage.anon and give credentials" in str(said)
    assert "check these" not in str(said)
