"""Every way to reach an object store: addressing styles, anonymous buckets, and where credentials come from."""

import pickle
from dataclasses import replace
from pathlib import Path

import aiobotocore.session  # noqa: F401 - loaded before a test takes away what it derives from
import botocore.session
import pytest
import yaml

from fault_proxy import FaultProxy
from headrace.objects import open_folder
from headrace.objects.client import client_for
from headrace.objects.connection import resolve
from headrace.objects.ways import ways_to
from headrace.objects.zarr_store import RemoteStore
from headrace.open_store import open_group
from headrace.schemas.errors import StorageError
from headrace.schemas.storage_config import StorageConfig
from s3_server import CLIENTS, KEY, SECRET, Bucket, serving

OSS, MINIO = "https://s3.oss-cn-beijing.aliyuncs.com", "http://minio.example.test:9000"


@pytest.fixture(params=CLIENTS)
def either(request: pytest.FixtureRequest, bucket: Bucket) -> Bucket:
    """A bucket reached through each client library in turn."""
    return bucket.through(request.param)


@pytest.mark.parametrize(
    ("storage", "endpoint"),
    [
        ({}, "https://hydro.s3.us-east-1.amazonaws.com"),
        ({"region": "eu-central-1"}, "https://hydro.s3.eu-central-1.amazonaws.com"),
        ({"addressing_style": "path"}, "https://s3.us-east-1.amazonaws.com"),
        ({"endpoint_url": MINIO}, MINIO),
        ({"endpoint_url": MINIO, "addressing_style": "virtual"}, "http://hydro.minio.example.test:9000"),
        ({"endpoint_url": OSS}, "https://hydro.s3.oss-cn-beijing.aliyuncs.com"),
        ({"endpoint_url": "https://hydro.oss-cn-beijing.aliyuncs.com"}, "https://hydro.oss-cn-beijing.aliyuncs.com"),
        ({"endpoint_url": OSS, "addressing_style": "path"}, OSS),
    ],
)
def test_where_requests_go(bucket, storage, endpoint):
    """D4."""
    assert resolve("hydro", StorageConfig(**storage)).endpoint == endpoint


def test_ways_are_told_once_for_each_bucket(bucket):
    """D4, D6."""
    stores = ["/disk/a.zarr", "s3://hydro/a.zarr", "s3://hydro/b.zarr"]
    assert ways_to(stores, StorageConfig(anon=True, region="us-west-2", concurrency=8)) == [
        "s3://hydro at https://hydro.s3.us-west-2.amazonaws.com (bucket in the host name, region us-west-2), "
        "without credentials, 8 requests at once"
    ]


def test_a_bucket_in_the_host_name(either, tmp_path, monkeypatch):
    """D4: virtual addressing on a server that wants it; the proxy stands in for the names of its hosts."""
    with (
        serving(tmp_path / "s3", arguments=("--force-path-style=false",)) as server,
        FaultProxy(server.endpoint) as proxy,
    ):
        (server.root / "hydro" / "data").mkdir(parents=True)
        (server.root / "hydro" / "data" / "x").write_bytes(b"123")
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        server = replace(server, client=either.server.client)
        storage = server.storage(endpoint_url="http://s3.example.test", addressing_style="virtual")
        folder = open_folder("s3://hydro/data", storage)
        assert folder.read("x") == b"123"
        assert folder.names() == ["x"]
        assert [e.key for e in proxy.exchanges] == ["data/x", ""]


def test_a_bucket_in_the_path(either, proxy):
    """D4."""
    (either.path / "x").write_bytes(b"123")
    folder = open_folder(either.url, either.server.storage(endpoint_url=proxy.url, addressing_style="path"))
    assert folder.read("x") == b"123"
    assert [e.key for e in proxy.exchanges] == [f"{either.name}/x"]


def test_anonymous_requests_are_not_signed_and_look_for_no_credentials(either, tmp_path, monkeypatch):
    """D6: a server that knows no keys, and nothing that could answer for credentials."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("credentials were looked for")

    monkeypatch.setattr(botocore.session, "Session", refuse)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-somebody-else-0003")
    with serving(tmp_path / "s3", keys=False) as server:
        (server.root / "hydro").mkdir()
        (server.root / "hydro" / "x").write_bytes(b"123")
        assert open_folder("s3://hydro", server.storage(anon=True, client=either.server.client)).read("x") == b"123"
    (either.path / "x").write_bytes(b"123")
    with pytest.raises(StorageError, match=r"(?s)refuses access.*no credentials \(storage\.anon\)"):
        open_folder(either.url, either.server.storage(anon=True)).read("x")


def by_environment(bucket: Bucket, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return {}


def by_profile(bucket: Bucket, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    file = home / "credentials"
    file.write_text(f"[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    return {"profile": "lab"}


def by_default_profile(bucket: Bucket, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    by_profile(bucket, home, monkeypatch)
    file = home / "credentials"
    file.write_text(file.read_text().replace("lab", "default"))
    return {}


def by_hydro_setting(bucket: Bucket, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    s3 = {"access_key_id": KEY, "secret_access_key": SECRET}
    (home / "hydro_setting.yml").write_text(yaml.safe_dump({"storage": {"s3": s3}}))
    return {}


@pytest.mark.parametrize("place", [by_environment, by_profile, by_default_profile, by_hydro_setting])
def test_credentials_are_found_where_they_usually_are(either, tmp_path, monkeypatch, place):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (either.path / "x").write_bytes(b"123")
    storage = either.server.storage(**place(either, home, monkeypatch))
    assert open_folder(either.url, storage).read("x") == b"123"


def test_what_crosses_processes_is_a_locator_and_each_process_has_one_client(cloud):
    """D7."""
    uri, storage = cloud.config.datasets["river"].timeseries, cloud.config.storage
    store = open_group(uri, storage).store
    sent = pickle.dumps(store)
    assert len(sent) < 1000
    assert SECRET.encode() not in sent
    assert KEY.encode() not in sent
    arrived = pickle.loads(sent)
    assert isinstance(store, RemoteStore)
    assert arrived == store
    assert arrived.client is store.client is client_for(store.location.bucket, storage)
