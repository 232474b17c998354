"""Keys where they do not belong are refused and never repeated; what hinders a look-up of keys is said."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from headrace.objects import open_folder, parse_location
from headrace.objects.client import client_for
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError, StorageError
from headrace.schemas.storage_config import StorageConfig
from s3_server import Bucket

SECRET = "wJalrXUtnF/K7MDENG/bPxRfiCY+EXAMPLE@KEY"
"""Secrets of AWS hold slashes, and an @ may stand in others."""


@pytest.mark.parametrize("scheme", ["s3", "gs", "http"])
def test_keys_in_a_url_are_not_repeated(scheme: str):
    with pytest.raises(ConfigError) as caught:
        parse_location(f"{scheme}://AKIDHEADRACE:{SECRET}@bucket/store.zarr")
    assert not shown_parts(str(caught.value))


@pytest.mark.parametrize("url", [f"http://AKIDHEADRACE:{SECRET}@host:9000", f"http://host/?secret={SECRET}"])
def test_keys_in_an_endpoint_are_not_repeated(url: str, monkeypatch):
    with pytest.raises(ValidationError) as refused:
        StorageConfig(endpoint_url=url)
    with pytest.raises(ConfigError) as explained:
        parse_config({"datasets": {}, "storage": {"endpoint_url": f"http://AKIDHEADRACE:{SECRET}@host"}})
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(ConfigError, match="environment variable AWS_ENDPOINT_URL") as of_environment:
        open_folder("s3://bucket/x", StorageConfig(anon=True)).read("x")
    for caught in (refused, explained, of_environment):
        assert not shown_parts(str(caught.value))


@pytest.mark.parametrize(
    "url", ["http://host:99999", "http://ho st", "http://host:x", "127.0.0.1:9000", "http://a:1:2"]
)
def test_an_endpoint_that_no_client_can_use_is_refused(url: str, monkeypatch):
    with pytest.raises(ValidationError, match="an endpoint is written as"):
        StorageConfig(endpoint_url=url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
    with pytest.raises(ConfigError, match="an endpoint is written as"):
        open_folder("s3://bucket/x", StorageConfig(anon=True)).read("x")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000", "https://[::1]:9000", "https://store.lab_1.org/gateway"])
def test_an_endpoint_is_taken_as_it_is(url: str):
    assert StorageConfig(endpoint_url=f"{url}/").endpoint_url == url


def test_a_profile_of_the_environment_that_is_not_there_is_said(bucket: Bucket, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_PROFILE", "typo")
    with pytest.raises(ConfigError, match=r"credentials cannot be read[\s\S]*typo"):
        open_folder(bucket.url, bucket.storage).read("x")


def test_what_a_process_for_credentials_says_is_not_repeated(bucket: Bucket, monkeypatch, tmp_path: Path):
    file = tmp_path / "config"
    file.write_text(f"[profile lab]\ncredential_process = /bin/sh -c 'echo {SECRET} >&2; exit 1'\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    with pytest.raises(ConfigError, match="profile cannot be used") as caught:
        open_folder(bucket.url, bucket.server.storage(profile="lab")).read("x")
    assert not shown_parts(str(caught.value))


def test_credentials_that_cannot_be_renewed_are_said_to_have_expired(bucket: Bucket, monkeypatch):
    client = client_for(bucket.name, bucket.server.storage(timeout_seconds=7.0))
    client.put("x", b"123")

    def gone(_: object) -> dict[str, object]:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("headrace.objects.credentials.Credentials.__call__", gone)
    monkeypatch.setattr(client, "_connection", None)
    with pytest.raises(StorageError, match=r"have expired[\s\S]*cannot be looked up: RuntimeError") as caught:
        client.get("x")
    assert not shown_parts(str(caught.value))


def shown_parts(text: str) -> list[str]:
    """Return the parts of key and secret that a text holds."""
    return [part for part in ("AKIDHEADRACE", "wJalr", "K7MDENG", "EXAMPLE", "KEY@") if part in text]
