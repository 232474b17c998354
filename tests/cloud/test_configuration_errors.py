"""A mistake in how an object store is reached ends each command in seconds, with the URL, the reason and no secret."""

import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud_project import write_cloud_project
from command_line import Outcome, run_headrace
from fault_proxy import FaultProxy
from fault_rules import Rule
from s3_server import CLIENTS, KEY, SECRET, Bucket

TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x46"


@pytest.fixture
def tls_port() -> Iterator[int]:
    """A port that speaks TLS: whatever else it hears it answers with an alert."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(TLS_ALERT)

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check(bucket: Bucket, folder: Path, **storage: Any) -> Outcome:
    """Check the project with the defaults of a user: many tries within a minute."""
    defaults = {"timeout_seconds": 60.0, "max_retries": 8}
    config = write_cloud_project(bucket, folder, bucket.server.storage(**defaults | storage))
    return run_headrace("check", config)


def refused(outcome: Outcome, *said: str, code: int = 3) -> None:
    assert outcome.code == code, outcome.out + outcome.err
    text = outcome.out + outcome.err
    for words in said:
        assert re.search(words, text), text
    assert SECRET not in text
    assert KEY not in text
    assert "Traceback" not in text
    waited = re.findall(r"(\d+) tries in \d+ s", text)
    assert len(waited) <= 1, "what did not answer one request is not waited for by the next"
    # Pauses add up to five seconds by then, however slow this machine is; a minute has room for two tries more.
    assert all(int(tries) <= 7 for tries in waited)


def test_a_project_that_is_right_says_how_its_stores_are_reached(bucket, tmp_path):
    """D4: what configuration and environment come to, without a secret."""
    outcome = check(bucket, tmp_path)
    assert outcome.code == 0, outcome.out + outcome.err
    assert (
        f"- {bucket.url} at {bucket.server.endpoint} (bucket in the path, region us-east-1), with credentials from the "
        "environment (AWS_ACCESS_KEY_ID), 64 requests at once\n"
    ) in outcome.out
    assert outcome.out.count(bucket.url) == 1
    assert SECRET not in outcome.out
    assert KEY not in outcome.out


@pytest.mark.parametrize("client", CLIENTS)
def test_nobody_listens(bucket, tmp_path, client):
    """D2, D3."""
    url = f"http://127.0.0.1:{closed_port()}"
    outcome = check(bucket.through(client), tmp_path, endpoint_url=url)
    refused(outcome, "cannot be reached", url, "connection was refused", bucket.url)
    assert (outcome.out + outcome.err).count("connection was refused") == 1, "one cause is told once, with all stores"
    refused(outcome, "one_timeseries.zarr", "; also s3://", "one_attributes.zarr")


def test_no_such_host(bucket, tmp_path):
    """D2."""
    url = "http://headrace-test.invalid:9000"
    # How many tries fit into the time depends on how fast names are refused.
    refused(check(bucket, tmp_path, endpoint_url=url), "cannot be reached", url, "host name is not known")


def test_wrong_secret(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret-0002")
    outcome = check(bucket, tmp_path)
    refused(outcome, "refuses access", bucket.server.endpoint, "AWS_ACCESS_KEY_ID", "403")
    assert "not-the-secret-0002" not in outcome.out + outcome.err


def test_unknown_key(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDUNKNOWNUNKNOWN")
    outcome = check(bucket, tmp_path)
    refused(outcome, "refuses access", "403")
    assert "AKIDUNKNOWNUNKNOWN" not in outcome.out + outcome.err


def test_no_credentials(bucket, tmp_path, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    outcome = check(bucket, tmp_path)
    refused(outcome, "no credentials", bucket.url, r"storage\.anon", code=2)
    assert (outcome.out + outcome.err).count("no credentials for an object store") == 1


def test_unknown_profile(bucket, tmp_path):
    refused(check(bucket, tmp_path, profile="nobody"), "profile cannot be used", "nobody", code=2)


def test_no_such_bucket(bucket, tmp_path):
    config = write_cloud_project(bucket, tmp_path)
    config.write_text(config.read_text().replace(bucket.url, "s3://no-such-bucket"))
    refused(run_headrace("check", config), "s3://no-such-bucket", "not found", bucket.server.endpoint)


def test_no_permission(bucket, tmp_path, proxy: FaultProxy):
    """A5, D4."""
    proxy.use(Rule(fault="denied"))
    refused(check(bucket, tmp_path, endpoint_url=proxy.url), "refuses access", proxy.url, "AccessDenied")


def test_a_bucket_in_the_path_where_the_host_name_is_wanted(bucket, tmp_path, proxy: FaultProxy):
    """D4: Aliyun OSS under a host name that is not known to be one of its own."""
    proxy.use(Rule(fault="path_forbidden"))
    refused(
        check(bucket, tmp_path, endpoint_url=proxy.url), "refuses the request", r"storage\.addressing_style", "virtual"
    )


def test_another_region(bucket, tmp_path, proxy: FaultProxy):
    proxy.use(Rule(fault="wrong_region"))
    refused(check(bucket, tmp_path, endpoint_url=proxy.url), "another region", r"storage\.region", "eu-central-1")


def test_https_to_a_server_of_http(bucket, tmp_path):
    """D4."""
    url = bucket.server.endpoint.replace("http://", "https://")
    refused(check(bucket, tmp_path, endpoint_url=url), "cannot be reached", url, "http or https")


def test_http_to_a_server_of_https(bucket, tmp_path, tls_port):
    """D4."""
    url = f"http://127.0.0.1:{tls_port}"
    refused(check(bucket, tmp_path, endpoint_url=url), "cannot be reached", url, "http or https")


def test_no_such_store_lists_what_is_beside_it(bucket, tmp_path):
    """D10, D11: nothing is guessed."""
    config = write_cloud_project(bucket, tmp_path)
    config.write_text(config.read_text().replace("one_timeseries", "one_timeserie"))
    refused(
        run_headrace("check", config), "store not found", f"{bucket.url}/one_timeserie.zarr", r"one_timeseries\.zarr"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["build-index", "{config}", "--out", "{folder}/index"],
        ["train", "--config", "{config}", "--index", "{url}/index", "--run-dir", "{folder}/run"],
        ["bench", "--index", "{url}/index"],
        ["inspect", "{url}/index"],
        ["sql", "{url}/index", "select 1"],
        ["check", "--index", "{url}/index"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_says_so(bucket, tmp_path, monkeypatch, arguments):
    dead = f"http://127.0.0.1:{closed_port()}"
    config = write_cloud_project(bucket, tmp_path, bucket.server.storage(endpoint_url=dead, timeout_seconds=60.0))
    monkeypatch.setenv("AWS_ENDPOINT_URL", dead)
    given = {"config": config, "folder": tmp_path, "url": bucket.url}
    refused(run_headrace(*(argument.format(**given) for argument in arguments)), "cannot be reached", dead)
