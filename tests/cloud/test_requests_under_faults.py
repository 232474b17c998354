"""One request under every fault: tried again and counted, or an error; never other bytes, never an absent object."""

import time
from dataclasses import asdict

import pytest

from fault_proxy import FaultProxy
from fault_rules import Fault, Rule
from headrace.objects import ObjectFolder, open_folder
from headrace.objects.counts import RequestCounts, request_counts
from headrace.schemas.errors import StorageError
from s3_server import CLIENTS, KEY, SECRET, Bucket

CONTENT = bytes(range(256)) * 300

PASSING: list[Fault] = [
    "slow_down",
    "too_many_requests",
    "server_error",
    "silent",
    "reset_before",
    "reset_within",
    "cut_short",
    "expired_token",
]
"""Faults that are gone when the request is sent again."""


@pytest.fixture(params=CLIENTS)
def bucket(request: pytest.FixtureRequest, bucket: Bucket) -> Bucket:
    """A bucket reached through each client library in turn."""
    return bucket.through(request.param)


@pytest.fixture
def folder(bucket: Bucket, proxy: FaultProxy) -> ObjectFolder:
    """A folder with an object `chunk`, reached through the proxy."""
    (bucket.path / "store").mkdir()
    (bucket.path / "store" / "chunk").write_bytes(CONTENT)
    storage = bucket.server.storage(endpoint_url=proxy.url, timeout_seconds=3.0)
    return open_folder(f"{bucket.url}/store", storage)


def counted(before: RequestCounts) -> dict[str, int]:
    return asdict(request_counts() - before)


@pytest.mark.parametrize("fault", [*PASSING, "cut_unmarked", "bare_not_found"])
def test_a_passing_fault_is_tried_again_and_counted(folder, proxy, fault):
    """D2."""
    proxy.use(Rule(fault=fault, attempts=1, seconds=30))
    before = request_counts()
    assert folder.read("chunk") == CONTENT
    assert [e.fault for e in proxy.exchanges] == [fault, ""]
    throttled = int(fault in ("slow_down", "too_many_requests"))
    assert counted(before) == {"requests": 2, "nbytes": len(CONTENT), "retries": 1, "throttles": throttled}


@pytest.mark.parametrize("fault", [f for f in PASSING if f not in ("reset_within", "cut_short")])
def test_writing_listing_and_looking_are_tried_again_as_well(folder, proxy, bucket, fault):
    proxy.use(Rule(fault=fault, attempts=1, seconds=30))
    folder.write("other", b"1234")
    assert (bucket.path / "store" / "other").read_bytes() == b"1234"
    stat = folder.stat("chunk")
    assert stat is not None
    assert folder.stats()["chunk"] == stat
    assert [e.fault for e in proxy.exchanges] == [fault, ""] * 3


@pytest.mark.parametrize("fault", [*PASSING, "cut_unmarked", "denied"])
def test_a_fault_that_stays_is_an_error_with_the_url_and_never_an_absent_object(folder, proxy, bucket, fault):
    """A3, A5: denied, cut and unanswered are not absent."""
    proxy.use(Rule(fault=fault, seconds=30))
    storage = bucket.server.storage(endpoint_url=proxy.url, timeout_seconds=3.0, max_retries=1)
    with pytest.raises(StorageError) as caught:
        open_folder(folder.url, storage).read("chunk")
    said = str(caught.value)
    assert f"{bucket.url}/store/chunk" in said
    assert proxy.url in said
    assert SECRET not in said
    assert KEY not in said
    assert caught.value.exit_code == 3
    assert len(proxy.exchanges) <= 2, "one layer of tries: the first and one more"


def test_absent_objects_are_proven_absent_or_an_error(folder, proxy):
    """A3, A5: where listing is not permitted the server denies what does not exist."""
    assert folder.stat("none") is None
    with pytest.raises(FileNotFoundError):
        folder.read("none")
    proxy.use(Rule(fault="absent_is_denied"))
    assert folder.read("chunk") == CONTENT
    for look in (folder.read, folder.stat):
        with pytest.raises(StorageError, match=r"(?s)refuses access.*403.*no proof that they are absent"):
            look("none")


def test_tries_end_at_one_deadline_whatever_they_met(folder, bucket, proxy):
    """D3: the tries of one request share one deadline, and nothing multiplies them."""
    storage = bucket.server.storage(endpoint_url=proxy.url, timeout_seconds=1.0, max_retries=1000)
    impatient = open_folder(folder.url, storage)
    for fault in ("slow_down", "server_error", "reset_before"):
        proxy.use(Rule(fault=fault))
        with pytest.raises(StorageError, match=r"tries in \d s"):
            impatient.read("chunk")
        assert 2 <= len(proxy.exchanges) <= 20, "pauses grow"


def test_slow_answers_are_waited_for(folder, proxy):
    """A slow look-up of a name, a slow server and a slow first byte look the same from here."""
    proxy.use(Rule(fault="latency", seconds=0.2), Rule(fault="slow_first_byte", seconds=0.2))
    began = time.monotonic()
    assert folder.read("chunk") == CONTENT
    assert time.monotonic() - began >= 0.4
    assert len(proxy.exchanges) == 1


def test_throttling_lasts_longer_between_tries_than_other_faults(folder, proxy):
    """D1: every fifth request is told to slow down, and all are answered in the end."""
    proxy.use(Rule(fault="slow_down", every=5))
    before = request_counts()
    for _ in range(8):
        assert folder.read("chunk") == CONTENT
    assert counted(before) == {"requests": 9, "nbytes": 8 * len(CONTENT), "retries": 1, "throttles": 1}
