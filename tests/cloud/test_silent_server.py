"""Who leaves does not wait for a server that answered once and is silent now: loaders, builds, whole processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from queue import Empty, SimpleQueue

import pytest

import headrace
from build_here import build_here
from fault_rules import Rule
from forked import forked
from headrace.indexer import build, claim
from headrace.objects import request_threads
from headrace.objects.client import client_for
from headrace.objects.request_group import part_of, request_group
from headrace.schemas.errors import StorageError

CHUNK = r"zarr/(rain|warmth|flow)/(c/\d/\d|\d\.\d)$"
LEAVE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from headrace.objects.client import client_for
from headrace.schemas.storage_config import StorageConfig

client = client_for(sys.argv[1], StorageConfig(endpoint_url=sys.argv[2], concurrency=4, timeout_seconds=90))
print(client.get("first"))
asked = [client.submit(f"silent-{i}") for i in range(40)]
waiting = ThreadPoolExecutor(2)
[waiting.submit(future.result) for future in asked[:8]]
raise KeyboardInterrupt
"""


def test_a_process_ends(bucket, proxy):
    proxy.use(Rule(fault="silent", key="silent", seconds=90))
    command = [sys.executable, "-c", LEAVE, bucket.name, proxy.url]
    ended = subprocess.run(command, timeout=60, capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == "None", ended.stderr
    assert ended.stderr.strip().endswith("KeyboardInterrupt")


def test_a_loader_is_closed(cloud, proxy, tmp_path):
    index = build_here(cloud.reached(timeout_seconds=90.0, max_retries=0).config, tmp_path / "index")
    proxy.use(Rule(fault="silent", key=CHUNK, seconds=90))
    with headrace.open_index(index) as opened, ThreadPoolExecutor(1) as thread:
        loader = headrace.WindowLoader(opened, "train", batch_size=64)
        before = loader.state_dict()
        reading = thread.submit(list, loader)
        while not proxy.exchanges:
            time.sleep(0.01)
        loader.end_iteration()
        with pytest.raises(RuntimeError, match="this iteration is over"):
            reading.result()
        assert loader.state_dict() == before
        reading = thread.submit(list, loader)
        loader.close()
        assert reading.exception() is not None


def test_a_build_ends_with_its_error_and_the_next_one_goes_well(cloud, proxy, tmp_path):
    patient = cloud.reached(timeout_seconds=90.0, max_retries=0).config
    proxy.use(Rule(fault="denied", key=r"/flow/(c/)?\d"), Rule(fault="silent", key=CHUNK, seconds=90))
    with pytest.raises(StorageError, match="AccessDenied"):
        build_here(patient, tmp_path / "index")
    proxy.use()
    build_here(patient, tmp_path / "index")


def test_a_build_that_is_stopped_leaves_its_lock_and_what_it_cannot_fetch(cloud, proxy, bucket, caplog, monkeypatch):
    def silence(*_, **__):
        proxy.use(Rule(fault="silent", seconds=90))
        raise KeyboardInterrupt

    for module in (build, claim):
        monkeypatch.setattr(module, "AFTER_STOP_SECONDS", 0.1)
    monkeypatch.setattr(build, "run_tasks", silence)
    with pytest.raises(KeyboardInterrupt):
        headrace.build_index(cloud.reached(timeout_seconds=90.0, max_retries=0).config, f"{bucket.url}/index")
    assert [r.getMessage().rpartition(": ")[2] for r in caplog.records] == ["the server does not answer"]
    assert [p.name.partition("-")[0] for p in (bucket.path / "index" / "parts").iterdir()] == ["lock"]


def test_ctrl_c_is_heard_while_a_request_is_under_way(bucket, proxy):
    client = client_for(bucket.name, bucket.server.storage(endpoint_url=proxy.url, timeout_seconds=90.0, max_retries=0))
    assert client.get("first") is None
    proxy.use(Rule(fault="silent", seconds=90))
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        client.get("second")


def test_what_a_build_gave_up_fails_and_all_else_goes_on(bucket, proxy, monkeypatch):
    """Also where its requests took every thread; a loader's request that is under way gets its answer."""
    monkeypatch.setattr(request_threads, "_GRACE_SECONDS", 0.05)
    (bucket.path / "chunk").write_bytes(b"1234")
    storage = bucket.server.storage(endpoint_url=proxy.url, concurrency=3, timeout_seconds=90.0, max_retries=0)
    client = client_for(bucket.name, storage)
    assert client.get("chunk").data == b"1234"
    proxy.use(Rule(fault="latency", key="chunk", seconds=0.5), Rule(fault="silent", key="silent", seconds=90))
    others = client.submit("chunk")
    with request_group("build") as requests, request_group("another"):
        with part_of("build"):
            asked = [client.submit(f"silent-{i}") for i in range(6)]
        with part_of("another"):
            queued = client.submit("chunk")
        while sum(future.running() for future in asked) < 2:
            time.sleep(0.01)

        def work():  # a fork has none of the threads that the end of a process waits for
            assert not request_threads._pools

        assert os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1]) == 0
        request_threads.give_up_soon(requests.end())
        assert all(isinstance(future.exception(), RuntimeError) for future in asked[:2])
        for future in asked[2:]:
            with pytest.raises(CancelledError):
                future.result()
        with part_of("build"), pytest.raises(RuntimeError, match="given up"):
            client.submit("chunk")
        assert others.result().data == queued.result().data == b"1234"
    with part_of("build"):
        assert client.submit("chunk").result().data == b"1234"


def test_a_request_that_was_given_up_is_not_sent_again():
    pool, begun, go_on, wanted = request_threads.RequestThreads(1), threading.Event(), threading.Event(), []

    def call():
        begun.set()
        go_on.wait(60)
        wanted.append(pool.pause(0.0))

    outcome = pool.submit(call)
    begun.wait(60)
    request_threads.give_up(outcome)
    assert pool.submit(pool.pause, 0.0).result()  # by another thread
    go_on.set()
    while not wanted:
        time.sleep(0.001)
    assert wanted == [False]
    pool.drop()


def test_threads_of_requests_end_with_their_pool_and_when_they_have_nothing_to_do(monkeypatch):
    def here() -> threading.Thread:
        time.sleep(0.01)
        return threading.current_thread()

    for idle in (60.0, 0.01):
        monkeypatch.setattr(request_threads, "IDLE_SECONDS", idle)
        pool = request_threads.RequestThreads(3)
        made = {answer.result() for answer in [pool.submit(here) for _ in range(9)]}
        if idle == 60.0:
            assert len(made) <= 3
            assert pool.drop() == []
        for thread in made:
            thread.join(60)
        assert not any(thread.is_alive() for thread in made)
    assert pool.submit(int).result() == 0
    pool.drop()


def test_no_call_is_lost_while_threads_come_and_go(monkeypatch):
    monkeypatch.setattr(request_threads, "IDLE_SECONDS", 0.0)
    pool = request_threads.RequestThreads(2)
    for _ in range(300):
        assert [answer.result(60) for answer in [pool.submit(int) for _ in range(3)]] == [0, 0, 0]
    pool.drop()


def test_no_call_is_lost_after_one_that_came_while_a_thread_began_to_wait(monkeypatch):
    monkeypatch.setattr(request_threads, "IDLE_SECONDS", 0.0)
    pool, late = request_threads.RequestThreads(1), []

    class Queue(SimpleQueue):
        """Something comes right after it was found empty for the first time."""

        def get_nowait(self):
            try:
                return super().get_nowait()
            except Empty:
                if not late:
                    late.append(None)
                    late.append(pool.submit(int))
                raise

    pool._waiting = Queue()
    pool.submit(threading.current_thread).result(60).join(60)
    assert late[1].result(60) == pool.submit(int).result(60) == 0
    pool.drop()
