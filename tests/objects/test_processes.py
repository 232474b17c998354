"""What a process brings along: its environment does not overrule the configuration, its limits are kept."""

import subprocess
import sys
from pathlib import Path

import obstore
import pytest

from fault_proxy import FaultProxy
from fault_rules import Rule
from headrace.objects import open_folder
from headrace.schemas.errors import StorageError
from s3_server import KEY, SECRET, Bucket

MANY_READS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from headrace.objects.client import client_for
from headrace.objects.limits import concurrency
from headrace.schemas.storage_config import StorageConfig
storage = StorageConfig(endpoint_url=sys.argv[1], concurrency=1000, max_retries=0)
assert 64 < concurrency(storage) < 128, concurrency(storage)
client = client_for(sys.argv[2], storage)
reads = [client.submit("x") for _ in range(600)]
assert all(read.result().data == b"123" for read in reads)
"""

ENDS_MEANWHILE = """
import sys, time
from headrace.objects.client import client_for
from headrace.schemas.storage_config import StorageConfig
client = client_for(sys.argv[2], StorageConfig(endpoint_url=sys.argv[1], max_retries=1000, timeout_seconds=600))
reads = [client.submit("x") for _ in range(8)]
time.sleep(1)
"""

FORKS = """
import os, sys
from headrace.objects import open_folder
from headrace.schemas.errors import ConfigError
from headrace.schemas.storage_config import StorageConfig
folder = open_folder(sys.argv[2], StorageConfig(endpoint_url=sys.argv[1], max_retries=0))
found = folder.read("x")
child = os.fork()
if child == 0:
    try:
        folder.read("x")
    except ConfigError as error:
        print(str(error).splitlines()[0], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(found)
"""


def test_nothing_in_the_environment_overrules_a_profile(bucket: Bucket, tmp_path: Path, monkeypatch):
    """D4: the client's library reads variables of its own."""
    file = tmp_path / "credentials"
    file.write_text(f"[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    others = {
        "AWS_ACCESS_KEY_ID": "AKIDOFSOMEBODY", "AWS_SECRET_ACCESS_KEY": "of-somebody-else", "AWS_SESSION_TOKEN": "x",
        "AWS_ENDPOINT": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1", "AWS_SKIP_SIGNATURE": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true", "AWS_BUCKET": "another",
    }  # fmt: skip
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    (bucket.path / "x").write_bytes(b"123")
    assert open_folder(bucket.url, bucket.server.storage(profile="lab")).read("x") == b"123"


@pytest.mark.parametrize("style", ["path", "auto"])
def test_a_bucket_of_another_name_in_the_environment_is_not_asked(bucket: Bucket, monkeypatch, style):
    monkeypatch.setenv("AWS_BUCKET_NAME", "another")
    (bucket.path / "x").write_bytes(b"123")
    assert open_folder(bucket.url, bucket.server.storage(addressing_style=style)).read("x") == b"123"


def test_many_readers_keep_to_the_files_a_process_may_open(bucket: Bucket):
    """D9."""
    (bucket.path / "x").write_bytes(b"123")
    command = [sys.executable, "-c", MANY_READS, bucket.server.endpoint, bucket.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_fork_of_a_process_that_has_read_is_refused_where_it_would_wait_for_ever(bucket: Bucket):
    (bucket.path / "x").write_bytes(b"123")
    command = [sys.executable, "-W", "ignore", "-c", FORKS, bucket.server.endpoint, bucket.url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "object storage cannot be used in a forked process\nb'123'\n", done.stderr


def test_a_process_that_ends_does_not_wait_for_further_tries(bucket: Bucket):
    """Its threads are waited for, so they must not go on as long as a request may be tried."""
    (bucket.path / "x").write_bytes(b"123")
    with FaultProxy(bucket.server.endpoint, [Rule(fault="slow_down", methods=("GET",))]) as proxy:
        command = [sys.executable, "-c", ENDS_MEANWHILE, proxy.url, bucket.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert len(proxy.asked("GET")) >= 8
    assert done.returncode == 0, done.stderr


def test_a_listing_that_is_not_found_proves_nothing_absent(bucket: Bucket, monkeypatch):
    """A3: nor is a write that is not found a write."""

    def not_found(*_: object, **__: object) -> None:
        raise FileNotFoundError("Server returned non-2xx status code: 404 Not Found: ")

    for name in ("list", "put"):
        monkeypatch.setattr(obstore, name, not_found)
    folder = open_folder(bucket.url, bucket.storage)
    with pytest.raises(StorageError, match="404"):
        folder.names()
    with pytest.raises(StorageError, match="404"):
        folder.write("x", b"123")
    assert folder.stat("x") is None
