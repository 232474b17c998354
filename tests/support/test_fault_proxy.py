"""The proxy passes requests on unchanged, makes each fault as a client sees it, and keeps count."""

import http.client
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from fault_proxy import FaultProxy
from fault_rules import Fault, Rule

CONTENT = bytes(range(256)) * 40


class _Upstream(BaseHTTPRequestHandler):
    """Objects under /bucket/data; anything else is absent; a PUT is answered with what came."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        found = self.path.startswith("/bucket/data")
        self._answer(200 if found else 404, CONTENT if found else b"<Error/>")

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, f"{self.path} {self.headers['Host']} {self.headers['X-Amz-Date']} ".encode() + body)

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"4\r\nlist\r\n3\r\ning\r\n0\r\n\r\n")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"tag"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of connections that the proxy cuts."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), _Upstream)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def proxy(upstream: str) -> Iterator[FaultProxy]:
    with FaultProxy(upstream) as proxy:
        yield proxy


def connect(proxy: FaultProxy) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=5)


def get(proxy: FaultProxy, path: str = "/bucket/data", method: str = "GET") -> tuple[int, bytes]:
    connection = connect(proxy)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_requests_go_on_as_they_came(proxy: FaultProxy) -> None:
    connection = connect(proxy)
    connection.request("PUT", "/bucket/a%20b?x=1", b"payload", {"Host": "bucket.example.test", "X-Amz-Date": "today"})
    assert connection.getresponse().read() == b"/bucket/a%20b?x=1 bucket.example.test today payload"
    connection.request("GET", "/bucket/data", headers={"Range": "bytes=0-9"})  # over the same connection
    answer = connection.getresponse()
    assert (answer.read(), answer.getheader("ETag")) == (CONTENT, '"tag"')
    connection.request("HEAD", "/bucket/data")
    answer = connection.getresponse()
    assert (answer.read(), answer.getheader("Content-Length")) == (b"", str(len(CONTENT)))
    connection.request("POST", "/bucket/?list")
    assert connection.getresponse().read() == b"listing"
    connection.request("GET", "http://bucket.example.test/bucket/data")
    assert connection.getresponse().read() == CONTENT
    connection.request("GET", "/bucket/none")
    assert connection.getresponse().status == 404
    connection.close()
    seen = [(e.method, e.key, e.query, e.range, e.status, e.nbytes) for e in proxy.exchanges]
    whole = len(CONTENT)
    assert seen[:3] == [
        ("PUT", "bucket/a b", "x=1", "", 200, 51),
        ("GET", "bucket/data", "", "bytes=0-9", 200, whole),
        ("HEAD", "bucket/data", "", "", 200, 0),
    ]
    assert len(proxy.asked("GET", "data$")) == 2
    assert {e.fault for e in proxy.exchanges} == {""}


@pytest.mark.parametrize(
    ("fault", "status", "word"),
    [
        ("slow_down", 503, b"SlowDown"),
        ("too_many_requests", 429, b"TooManyRequests"),
        ("server_error", 500, b"InternalError"),
        ("denied", 403, b"AccessDenied"),
        ("expired_token", 403, b"ExpiredToken"),
    ],
)
def test_an_error_is_an_s3_document_once(proxy: FaultProxy, fault: Fault, status: int, word: bytes) -> None:
    proxy.use(Rule(fault=fault, attempts=1))
    found = get(proxy)
    assert found[0] == status
    assert word in found[1]
    assert get(proxy) == (200, CONTENT)
    assert get(proxy, method="HEAD") == (status, b"")
    assert [e.fault for e in proxy.exchanges] == [fault, "", fault]


def test_only_what_is_absent_is_denied(proxy: FaultProxy) -> None:
    proxy.use(Rule(fault="absent_is_denied"))
    assert get(proxy) == (200, CONTENT)
    assert get(proxy, "/bucket/none")[0] == 403


def test_resets_reach_the_client(proxy: FaultProxy) -> None:
    proxy.use(Rule(fault="reset_before", key="data1"), Rule(fault="reset_within", key="data2"))
    with pytest.raises(ConnectionError):
        get(proxy, "/bucket/data1")
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        get(proxy, "/bucket/data2")
    assert get(proxy, "/bucket/data3") == (200, CONTENT)
    assert [(e.status, e.nbytes) for e in proxy.exchanges][:2] == [(0, 0), (200, len(CONTENT) // 2)]


def test_bodies_are_cut_in_three_ways(proxy: FaultProxy) -> None:
    half = CONTENT[: len(CONTENT) // 2]
    proxy.use(
        Rule(fault="cut_short", key="data1"),
        Rule(fault="cut_unmarked", key="data2"),
        Rule(fault="cut_relabelled", key="data3"),
    )
    with pytest.raises(http.client.IncompleteRead) as error:
        get(proxy, "/bucket/data1")
    assert error.value.partial == half
    assert get(proxy, "/bucket/data2") == (200, half)
    assert get(proxy, "/bucket/data3") == (200, half)


def test_silence_lasts_until_the_proxy_closes(upstream: str) -> None:
    proxy = FaultProxy(upstream, [Rule(fault="silent", seconds=60)])
    connection = connect(proxy)
    connection.request("GET", "/bucket/data")
    connection.sock.settimeout(0.1)
    with pytest.raises(TimeoutError):
        connection.sock.recv(1)
    connection.sock.settimeout(5)
    proxy.close()
    assert connection.sock.recv(1) == b""
    connection.close()


@pytest.mark.parametrize("fault", ["latency", "slow_first_byte"])
def test_waits_last_as_long_as_they_are_told(proxy: FaultProxy, fault: Fault) -> None:
    proxy.use(Rule(fault=fault, seconds=0.1), Rule(fault="slow_down", key="data1"))
    began = time.monotonic()
    assert get(proxy) == (200, CONTENT)
    assert time.monotonic() - began >= 0.1
    assert get(proxy, "/bucket/data1")[0] == (503 if fault == "latency" else 200)


def struck(proxy: FaultProxy, rule: Rule, seed: int = 0) -> list[bool]:
    proxy.use(rule, seed=seed)
    for number in range(60):
        get(proxy, f"/bucket/data{number}")
    return [bool(e.fault) for e in proxy.exchanges]


def test_a_share_strikes_at_the_same_requests_in_every_run(proxy: FaultProxy) -> None:
    rule = Rule(fault="slow_down", share=0.3)
    first = struck(proxy, rule)
    assert first == struck(proxy, rule)
    assert 5 <= sum(first) <= 35
    assert first != struck(proxy, rule, seed=1)


def test_rules_count(proxy: FaultProxy) -> None:
    assert struck(proxy, Rule(fault="slow_down", every=5)) == [i % 5 == 4 for i in range(60)]
    assert struck(proxy, Rule(fault="slow_down", times=3)) == [i < 3 for i in range(60)]
    assert not any(struck(proxy, Rule(fault="slow_down", methods=("PUT",))))
    assert sum(struck(proxy, Rule(fault="slow_down", key="data1$"))) == 1
