"""Both client libraries: what one sees, says and leaves, the other does; who does not use s3fs does not load it."""

import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from botocore.exceptions import NoCredentialsError

from build_here import build_here
from cloud_joint import epoch_bytes
from cloud_project import write_cloud_project
from command_line import run_headrace
from fault_proxy import FaultProxy
from fault_rules import Fault, Rule
from headrace.objects import open_folder, s3fs_bucket
from headrace.objects.client_library import library_of
from headrace.objects.credentials import Credentials
from headrace.schemas.errors import StorageError
from headrace.schemas.storage_config import StorageConfig
from indexing import table_bytes
from s3_server import CLIENTS, KEY, SECRET, Bucket

WHICH_ARE_LOADED = """
import sys
from headrace.objects import open_folder
from headrace.schemas.storage_config import StorageConfig
open_folder(sys.argv[1], StorageConfig(endpoint_url=sys.argv[2])).read("x")
print(*sorted({"obstore", "s3fs", "aiobotocore", "aiohttp", "fsspec"} & set(sys.modules)))
"""


def refusal(place: str, storage: StorageConfig, look: Callable[..., object]) -> str:
    """Return what is said, without how often it was tried."""
    with pytest.raises(StorageError) as caught:
        look(open_folder(place, storage))
    assert caught.value.__cause__ is None
    return re.sub(r" \(\d+ tries in \d+ s\)", "", str(caught.value))


def both_say(bucket: Bucket, look: Callable[..., object], url: str = "", **storage: object) -> str:
    """Return what both say; it is the same."""
    settings = {"max_retries": 1, "timeout_seconds": 3.0} | storage
    said = {refusal(url or bucket.url, bucket.through(c).server.storage(**settings), look) for c in CLIENTS}
    assert len(said) == 1, said
    return said.pop()


def reading(folder):
    return folder.read("x")


def listing(folder):
    return folder.names()


def looking(folder):
    return folder.stat("x")


def writing(folder):
    return folder.write("x", b"123")


LOOKS = [reading, listing, looking, writing]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(
    "fault",
    ["denied", "expired_token", "wrong_region", "path_forbidden", "slow_down", "too_many_requests", "server_error"],
)
def test_an_answer_is_told_in_the_same_words(bucket: Bucket, proxy: FaultProxy, fault: Fault, look):
    proxy.use(Rule(fault=fault))
    assert "HTTP status" in both_say(bucket, look, endpoint_url=proxy.url)


@pytest.mark.parametrize("look", [reading, listing, writing])
def test_no_such_bucket_is_told_in_the_same_words(bucket: Bucket, look):
    assert "bucket not found" in both_say(bucket, look, "s3://no-such-bucket/folder")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "headrace-test.invalid:9000"])
def test_no_answer_is_told_in_the_same_words(bucket: Bucket, host: str):
    assert "cannot be reached" in both_say(bucket, reading, endpoint_url=f"http://{host}", max_retries=0)


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_a_wrong_key_is_told_in_the_same_words(bucket: Bucket, name: str, monkeypatch):
    monkeypatch.setenv(name, "OF-SOMEBODY-ELSE-4")
    assert "refuses access" in both_say(bucket, reading)


@pytest.mark.parametrize("fault", ["silent", "cut_short", "reset_before"])
def test_an_answer_that_breaks_off_is_tried_as_often_by_both(bucket: Bucket, proxy: FaultProxy, fault: Fault):
    (bucket.path / "y").write_bytes(b"123")
    (bucket.path / "x").write_bytes(bytes(1000))
    for client in CLIENTS:
        proxy.use(Rule(fault=fault, key="x$", seconds=30))
        storage = bucket.through(client).server.storage(endpoint_url=proxy.url, max_retries=1, timeout_seconds=2.0)
        open_folder(bucket.url, storage).read("y")
        assert "an answer to GET" in refusal(bucket.url, storage, reading)
        assert len(proxy.asked(key="x$")) == 2


def tables(index: Path) -> dict[str, bytes]:
    """Return all files of an index but its manifest, which holds the configuration."""
    return {name: content for name, content in table_bytes(index).items() if name != "manifest.json"}


def test_an_index_of_one_client_is_up_to_date_for_the_other(cloud, proxy: FaultProxy, tmp_path: Path):
    """A4: tables, fingerprints and batches are the same bytes."""
    made = {client: build_here(cloud.reached(client=client).config, tmp_path / client) for client in CLIENTS}
    first, second = made.values()
    kept = tables(first)
    assert kept == tables(second) != {}
    assert epoch_bytes(first) == epoch_bytes(second) != []
    proxy.use()
    build_here(cloud.reached(client="s3fs").config, first)
    assert len(proxy.exchanges) > 10
    assert proxy.asked("GET", r"zarr/(rain|warmth|flow)/(c/)?\d") == [], "nothing is scanned again"
    assert tables(first) == kept


def test_large_objects_are_written_in_parts_and_faults_of_that_are_told(bucket, proxy: FaultProxy, monkeypatch):
    monkeypatch.setattr(s3fs_bucket, "MULTIPART_NBYTES", 1)
    folder = open_folder(bucket.url, bucket.server.storage(client="s3fs", endpoint_url=proxy.url))
    folder.write("x", b"123")
    assert folder.read("x") == b"123"
    proxy.use(Rule(fault="denied"))
    with pytest.raises(StorageError, match=r"refuses access[\s\S]*HTTP status 403 AccessDenied"):
        folder.write("x", b"456")


def test_credentials_that_cannot_be_renewed_are_said_to_have_expired(bucket: Bucket, tmp_path: Path, monkeypatch):
    def gone() -> NoReturn:
        raise NoCredentialsError

    monkeypatch.setattr(
        "headrace.objects.s3fs_bucket.find_credentials", lambda *_: Credentials(source="a role", find=gone)
    )
    with pytest.raises(StorageError, match=r"have expired[\s\S]*a role[\s\S]*cannot be looked up: NoCredentialsError"):
        open_folder(bucket.url, bucket.server.storage(client="s3fs")).read("x")


def test_keys_are_in_no_log_of_either(bucket: Bucket, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    for client in CLIENTS:
        folder = open_folder(bucket.url, bucket.through(client).storage)
        folder.write("x", b"123")
        assert folder.names() == ["x"]
    assert KEY not in caplog.text
    assert SECRET not in caplog.text


def test_who_does_not_use_s3fs_does_not_load_it(bucket: Bucket):
    (bucket.path / "x").write_bytes(b"123")
    command = [sys.executable, "-c", WHICH_ARE_LOADED, bucket.url, bucket.server.endpoint]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["obstore"]


def test_where_obstore_cannot_be_loaded_s3fs_takes_its_place_and_check_says_so(bucket, tmp_path, monkeypatch):
    assert library_of(StorageConfig()) == "obstore"
    assert library_of(StorageConfig(client="s3fs")) == "s3fs"
    monkeypatch.setitem(sys.modules, "obstore", None)
    assert library_of(StorageConfig(client="obstore")) == "obstore"
    assert library_of(StorageConfig()) == "s3fs"
    outcome = run_headrace("check", write_cloud_project(bucket, tmp_path))
    assert outcome.code == 0, outcome.err
    assert "64 requests at once through s3fs\n" in outcome.out
