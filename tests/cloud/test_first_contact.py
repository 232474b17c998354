"""An address that never answered is given a few seconds, once; one that answered is given its time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fault_proxy import FaultProxy
from fault_rules import Rule
from headrace.commands.first_look import hear_from_buckets
from headrace.objects import ObjectFolder, contact, open_folder
from headrace.objects.counts import request_counts
from headrace.schemas.errors import StorageError
from s3_server import CLIENTS, Bucket


@pytest.fixture(params=CLIENTS)
def folder(
    request: pytest.FixtureRequest, bucket: Bucket, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> ObjectFolder:
    """A folder with an object `chunk`, with the time limits of a user but for the first contact, which is short."""
    monkeypatch.setattr(contact, "FIRST_SECONDS", 0.6)
    monkeypatch.setattr(contact, "AGAIN_SECONDS", 0.2)
    contact._contact.cache_clear()
    (bucket.path / "chunk").write_bytes(b"1234")
    storage = bucket.server.storage(client=request.param, endpoint_url=proxy.url, timeout_seconds=60.0)
    return open_folder(bucket.url, storage)


def test_silence_from_the_start_ends_all_requests_soon_and_together(folder, proxy):
    proxy.use(Rule(fault="silent", seconds=30))
    before = request_counts()
    with ThreadPoolExecutor(8) as threads:
        reads = [threads.submit(folder.read, "chunk") for _ in range(8)]
        said = {str(read.exception()) for read in reads}
    assert (request_counts() - before).requests == 2
    assert sum("2 tries" in text for text in said) == 1
    assert all("cannot be reached" in text and proxy.url in text and "no answer in" in text for text in said)


def test_one_request_that_is_lost_is_sent_again_beside_it(folder, proxy):
    proxy.use(Rule(fault="silent", seconds=30, attempts=1))
    before = request_counts()
    assert folder.read("chunk") == b"1234"
    assert (request_counts() - before).retries == 1


def test_a_server_that_answers_is_given_its_time(folder, proxy):
    proxy.use(Rule(fault="slow_down", attempts=2))  # pauses of at least 0.45 s
    assert folder.read("chunk") == b"1234"
    proxy.use(Rule(fault="latency", seconds=0.8))
    assert folder.read("chunk") == b"1234"
    assert len(proxy.exchanges) == 1


def test_a_first_answer_that_has_begun_is_waited_for(folder, proxy):
    proxy.use(Rule(fault="slow_first_byte", seconds=0.8))
    assert folder.read("chunk") == b"1234"


def test_an_address_that_was_given_up_is_asked_again_later(folder, proxy, monkeypatch):
    proxy.use(Rule(fault="silent", seconds=30))
    with pytest.raises(StorageError):
        folder.read("chunk")
    proxy.use()
    with pytest.raises(StorageError):
        folder.read("chunk")
    assert not proxy.exchanges
    monkeypatch.setattr(contact, "_REMEMBERED_SECONDS", 0.0)
    assert folder.read("chunk") == b"1234"


def test_a_command_hears_from_each_address_once_whatever_it_answers(cloud, folder, proxy):
    for rule in (Rule(fault="denied"), Rule(fault="slow_down", attempts=1)):
        contact._contact.cache_clear()
        proxy.use(rule)
        before = request_counts()
        hear_from_buckets(cloud.config)
        hear_from_buckets(cloud.config)
        found = request_counts() - before
        assert found.requests - found.retries == 1
    contact._contact.cache_clear()
    proxy.use(Rule(fault="silent", seconds=30))
    with pytest.raises(StorageError, match="cannot be reached"):
        hear_from_buckets(cloud.config)
