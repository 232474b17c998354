"""An S3 server on loopback with stores in a bucket, and a proxy before it that adds latency; each a process."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUCKET = "stores"
KEY, SECRET = "headrace-benchmark", "not-a-secret-but-long-enough"
_PROXY = """
import sys
sys.path.insert(0, sys.argv[1])
from fault_proxy import FaultProxy
from fault_rules import Rule
with FaultProxy(sys.argv[2], [Rule(fault="latency", seconds=float(sys.argv[3]))]) as proxy:
    print(proxy.url, flush=True)
    sys.stdin.read()
    print(len(proxy.exchanges), flush=True)
"""


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """Serve a folder whose folders are buckets; give the URL. The environment holds the keys meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*free.getsockname())
    rclone = Path(sys.executable).with_name("rclone")
    command = [rclone, "serve", "s3", "--addr", address, "--auth-key", f"{KEY},{SECRET}"]
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
    before = {name: os.environ.get(name) for name in keys}
    server = subprocess.Popen([*command, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        os.environ.update(keys)
        _wait_for(address)
        yield f"http://{address}"
    finally:
        server.terminate()
        server.wait()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def late_proxy(upstream: str, seconds: float) -> Iterator[str]:
    """Give the URL of a proxy that answers every request so much later."""
    support = Path(__file__).resolve().parents[1] / "tests" / "support"
    command = [sys.executable, "-c", _PROXY, str(support), upstream, str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        yield proxy.stdout.readline().strip()
        proxy.communicate()


def _wait_for(address: str) -> None:
    host, port = address.split(":")
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"no S3 server at {address}")
