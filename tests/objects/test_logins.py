"""Keys where they do not belong are refused and never repeated or logged; what hinders a look-up of keys is said."""

import logging
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from unittest import mock

import botocore.session
import pytest
from pydantic import ValidationError

from headrace.objects import open_folder, parse_location
from headrace.objects.client import client_for
from headrace.objects.client_library import connect
from headrace.objects.faults import Fault, FaultError, Kind
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError, StorageError
from headrace.schemas.storage_config import StorageConfig
from s3_server import CLIENTS, KEY, Bucket
from s3_server import SECRET as SERVER_SECRET

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


def test_a_look_up_in_vain_is_not_made_again_by_every_request(bucket: Bucket, monkeypatch):
    """Each would wait for a machine's role that nobody answers for."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    look = mock.Mock(side_effect=botocore.session.Session)
    monkeypatch.setattr(botocore.session, "Session", look)
    for name in ("x", "y"):
        with pytest.raises(ConfigError, match="no credentials"):
            open_folder(bucket.url, bucket.server.storage(timeout_seconds=6.0)).read(name)
    assert look.call_count == 1
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    with pytest.raises(FileNotFoundError):
        open_folder(bucket.url, bucket.server.storage(timeout_seconds=6.0)).read("x")


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


def test_credentials_are_renewed_once_for_all_requests_that_find_them_expired(bucket: Bucket, monkeypatch):
    client = client_for(bucket.name, bucket.server.storage(timeout_seconds=9.0))
    client.put("x", b"123")
    old = client._connection
    assert old is not None
    made = mock.Mock(side_effect=connect)
    monkeypatch.setattr("headrace.objects.client.connect", made)

    def expired(_: str) -> None:
        client._renew(old)  # by another thread
        assert client.stat("x") is not None
        raise FaultError(Fault(kind=Kind.EXPIRED, reason="too old"))

    monkeypatch.setattr(old, "get", expired)
    found = client.submit("x").result()
    assert found is not None
    assert bytes(found.data) == b"123"
    assert made.call_count == 1


STS_ANSWER = f"""<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{SERVER_SECRET}</SecretAccessKey><SessionToken>token-of-role</SessionToken>
<Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>""".encode()


class Sts(BaseHTTPRequestHandler):
    """Gives everybody the keys of the test server."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(STS_ANSWER)))
        self.end_headers()
        self.wfile.write(STS_ANSWER)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("client", CLIENTS)
def test_a_role_leaves_neither_keys_nor_tokens_in_the_most_talkative_log(
    bucket: Bucket, client: str, monkeypatch, caplog, tmp_path: Path
):
    """An empty listing is signed a second time, apart from the client library."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (tmp_path / "identity").write_text("identity-of-pod")
    given = {"ROLE_ARN": "arn:aws:iam::123456789012:role/x", "WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "identity")}
    for name in ("botocore", "aiobotocore"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    caplog.set_level(logging.DEBUG)
    with HTTPServer(("127.0.0.1", 0), Sts) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        given |= {"ENDPOINT_URL_STS": f"http://127.0.0.1:{server.server_port}"}
        for name, value in given.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        folder = open_folder(f"{bucket.url}/x", bucket.server.storage(client=client, timeout_seconds=8.0))
        assert not list(folder.names())
        folder.write("y", b"123")
        server.shutdown()
    assert folder.read("y") == b"123"
    assert caplog.records, "something is logged"
    assert not [word for word in ("identity-of-pod", "token-of-role", KEY, SERVER_SECRET) if word in caplog.text]


def shown_parts(text: str) -> list[str]:
    """Return the parts of key and secret that a text holds."""
    return [part for part in ("AKIDHEADRACE", "wJalr", "K7MDENG", "EXAMPLE", "KEY@") if part in text]
