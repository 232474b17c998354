"""One builder at a time at a URL, and a lock that a killed one left holds no one for ever."""

import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace

import pytest

from headrace.indexer import claim as claim_module
from headrace.indexer.claim import Claim, Owner
from headrace.indexer.remote_site import claimed_url
from headrace.objects import open_folder
from headrace.schemas.errors import ConfigError, StorageError
from indexing import build_inline, config, dataset, table_bytes
from synthetic import write_store


@pytest.fixture
def folder(bucket):
    return open_folder(f"{bucket.url}/i", bucket.storage)


@pytest.fixture
def settings(bucket, tmp_path):
    store = write_store(tmp_path / "s.zarr", basins=2, steps=20, variables=("rain", "flow"))
    return config({"a": dataset(store)}, storage=bucket.storage.model_dump())


@pytest.fixture
def held(folder):
    claim = Claim(folder)
    claim.take()
    yield claim
    claim.release()


def leave(folder, owner: Owner, renewed: float) -> str:
    """Write what a builder leaves that was killed."""
    name = "parts/lock-0123456789abcdef.json"
    folder.write(name, json.dumps({"owner": asdict(owner), "renewed": renewed}).encode())
    return name


def test_second_builder_is_refused_and_disturbs_nothing(settings, folder, held, monkeypatch):
    with pytest.raises(ConfigError, match="another build works in this folder") as caught:
        build_inline(settings, folder.url, monkeypatch)
    assert f"process {Owner.here().pid} on {Owner.here().host}" in str(caught.value)
    (name,) = folder.names("parts/")
    assert f"or delete {folder.url}/{name}" in str(caught.value)
    held.check()
    held.release()
    build_inline(settings, folder.url, monkeypatch)
    assert not folder.names("parts/lock")


def test_lock_of_a_process_of_this_machine_that_has_ended_is_removed_at_once(settings, folder, monkeypatch, caplog):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    owner = replace(Owner.here(), pid=int(ended.stdout), started=time.time() - 1)
    name = leave(folder, owner, time.time())
    build_inline(settings, folder.url, monkeypatch)
    assert f"{folder.url}/{name} was left behind by a build that was killed" in caplog.text
    assert not folder.names("parts/lock")


def test_number_of_an_ended_process_that_another_has_now_does_not_hold(folder):
    leave(folder, replace(Owner.here(), started=Owner.here().started - 100), time.time())
    claim = Claim(folder)
    claim.take()
    claim.release()


@pytest.mark.parametrize("age", [1, 500])
def test_lock_of_another_machine_holds_for_ten_minutes_after_it_was_renewed(settings, folder, monkeypatch, age):
    renewed = time.time() - age
    leave(folder, Owner(host="far", machine="other", pid=1, started=0.0), renewed)
    with pytest.raises(ConfigError, match="process 1 on far") as caught:
        build_inline(settings, folder.url, monkeypatch)
    ends = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(renewed + 600))
    assert f"if that process was killed, run again after {ends}" in str(caught.value)


def test_older_lock_of_another_machine_is_removed(settings, folder, monkeypatch):
    leave(folder, Owner(host="far", machine="other", pid=1, started=0.0), time.time() - 601)
    build_inline(settings, folder.url, monkeypatch)
    assert folder.stat("manifest.json") is not None


def test_lock_that_is_no_lock_is_named(settings, folder, monkeypatch):
    folder.write("parts/lock-1.json", b"{}")
    with pytest.raises(ConfigError, match="a lock cannot be read") as caught:
        build_inline(settings, folder.url, monkeypatch)
    assert f"{folder.url}/parts/lock-1.json" in str(caught.value)
    assert folder.names("parts/") == ["parts/lock-1.json"]


def test_lock_is_renewed_while_the_build_runs(folder, monkeypatch):
    monkeypatch.setattr(claim_module, "RENEW_SECONDS", 0.01)
    claim = Claim(folder)
    claim.take()
    (name,) = folder.names("parts/lock")
    first = json.loads(folder.read(name))["renewed"]
    deadline = time.monotonic() + 20
    while json.loads(folder.read(name))["renewed"] == first and time.monotonic() < deadline:
        time.sleep(0.01)
    assert json.loads(folder.read(name))["renewed"] > first
    claim.release()
    assert folder.names() == []


def test_builder_whose_lock_was_taken_away_publishes_nothing(settings, folder, bucket, monkeypatch):
    """It stood still for so long that another one began, and that one's tables must not be overwritten."""
    build_inline(settings, folder.url, monkeypatch)
    before = table_bytes(bucket.path / "i")
    plan = settings.model_copy(update={"window": settings.window.model_copy(update={"stride": 2})})
    check = claim_module.Claim.check

    def taken_away(claim):
        folder.delete(claim._name)
        check(claim)

    with monkeypatch.context() as patch:
        patch.setattr(claim_module.Claim, "check", taken_away)
        with pytest.raises(ConfigError, match="the lock of this build is gone"):
            build_inline(plan, folder.url, monkeypatch)
    assert table_bytes(bucket.path / "i") == before


def test_of_many_that_begin_at_once_never_two_hold(folder, monkeypatch):
    monkeypatch.setattr(claim_module.random, "uniform", lambda low, high: 0.01)
    holding, most, refused = [], [], []
    begin = threading.Barrier(6)

    def build():
        claim = Claim(folder)
        begin.wait()
        try:
            claim.take()
        except ConfigError:
            refused.append(claim)
            return
        holding.append(claim)
        most.append(len(holding))
        time.sleep(0.05)
        holding.remove(claim)
        claim.release()

    threads = [threading.Thread(target=build) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) <= {1}
    assert len(most) + len(refused) == 6
    assert folder.names() == []


def test_nothing_is_written_any_more_once_a_build_has_failed(folder, bucket, monkeypatch):
    """A late answer to the failed build must not fall into what the next one writes."""
    begun, ended = [], []
    others = threading.Barrier(6)

    def delete(_: object, name: str) -> None:
        if "part-0" in name:
            others.wait()
            raise StorageError(name)
        begun.append(name)
        others.wait()
        time.sleep(0.2)
        ended.append(name)

    for number in range(6):
        folder.write(f"parts/part-{number}.parquet", b"")
    with claimed_url(folder.url, bucket.storage) as site:
        monkeypatch.setattr(type(folder), "delete", delete)
        with pytest.raises(StorageError, match="part-0"):
            site.sweep(set())
        monkeypatch.undo()
        assert sorted(begun) == sorted(ended)


def test_a_listing_that_does_not_show_the_own_lock_proves_nothing_of_others(folder, held, monkeypatch):
    """So answers a page that is well-formed and no listing."""
    monkeypatch.setattr(type(folder), "names", lambda *_: [])
    with pytest.raises(ConfigError, match="not listed where it was written"):
        Claim(folder).take()
    monkeypatch.undo()
    assert len(folder.names("parts/lock")) == 1
