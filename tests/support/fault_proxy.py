"""A proxy before an S3 server that makes the faults of networks and object stores, and keeps a record of every request.

Requests go on as they came, Host included, which S3 signatures cover. Each connection has a thread, and a connection to
the server, of its own. Requests in absolute form are taken as well, so that ``HTTP_PROXY`` may name the proxy and a
bucket's host name need not exist.
"""

import http.client
import re
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from fault_rules import Chooser, Exchange, Rule
from odd_answers import ODD, odd_answer

PIECE = 1 << 18
HOP_BY_HOP = {"connection", "expect", "keep-alive", "proxy-connection", "transfer-encoding"}
NO_LINGER = struct.pack("ii", 1, 0)

ERRORS = {
    "slow_down": (503, "SlowDown", "Please reduce your request rate."),
    "too_many_requests": (429, "TooManyRequests", "Please try again later."),
    "server_error": (500, "InternalError", "We encountered an internal error. Please try again."),
    "denied": (403, "AccessDenied", "Access Denied"),
    "absent_is_denied": (403, "AccessDenied", "Access Denied"),
    "path_forbidden": (403, "SecondLevelDomainForbidden", "Please use virtual hosted style to access."),
    "wrong_region": (400, "AuthorizationHeaderMalformed", "The region 'us-east-1' is wrong; expecting 'eu-central-1'"),
    "expired_token": (403, "ExpiredToken", "The provided token has expired."),
}


class FaultProxy:
    """A proxy on loopback before one server.

    Parameters
    ----------
    upstream
        URL of the server, such as ``http://127.0.0.1:9000``.
    rules
        Faults to make; none passes everything on.
    seed
        Of the rules that strike at a share of the requests.
    """

    def __init__(self, upstream: str, rules: Sequence[Rule] = (), seed: int = 0) -> None:
        parts = urlsplit(upstream)
        if parts.hostname is None or parts.port is None:
            msg = f"{upstream} names no host and port"
            raise ValueError(msg)
        self._server = _Server(parts.hostname, parts.port, Chooser(rules, seed))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="fault-proxy", daemon=True).start()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def exchanges(self) -> list[Exchange]:
        """Every request so far, in the order of the answers."""
        return list(self._server.exchanges)

    @property
    def most_at_once(self) -> int:
        """The largest number of requests that were under way together."""
        return self._server.most_at_once

    def asked(self, method: str = "", key: str = "") -> list[Exchange]:
        """Return the requests of a method, any if empty, whose ``bucket/key`` holds a regular expression."""
        return [e for e in self.exchanges if method in ("", e.method) and re.search(key, e.key)]

    def use(self, *rules: Rule, seed: int = 0) -> None:
        """Make other faults from the next request on, and begin a new record."""
        self._server.chooser = Chooser(rules, seed)
        self._server.exchanges = []
        self._server.most_at_once = 0

    def close(self) -> None:
        """Cut every connection and stop; an error inside the proxy is raised here."""
        self._server.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.cut_all()
        if self._server.problems:
            raise self._server.problems[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, host: str, port: int, chooser: Chooser) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = (host, port)
        self.chooser = chooser
        self.exchanges: list[Exchange] = []
        self.problems: list[Exception] = []
        self.closing = threading.Event()
        self.under_way = self.most_at_once = 0
        self.lock = threading.Lock()
        self._open: set[socket.socket] = set()

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]  # a server for TCP alone
        self._open.add(request)
        super().process_request_thread(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]  # a server for TCP alone
        self._open.discard(request)
        lingers = struct.unpack("ii", request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
        if lingers == (1, 0):
            request.close()  # no orderly end first: the client sees a reset
        else:
            super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        if isinstance(error, Exception) and not isinstance(error, OSError) and not self.closing.is_set():
            self.problems.append(error)

    def cut_all(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._upstream = http.client.HTTPConnection(*self.server.upstream, timeout=60)

    def finish(self) -> None:
        self._upstream.close()
        super().finish()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        with self.server.lock:
            self.server.under_way += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.under_way)
        try:
            self._meet()
        finally:
            with self.server.lock:
                self.server.under_way -= 1

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _meet(self) -> None:
        parts = urlsplit(self.path)
        path = (
            self.path if self.path.startswith("/") else self.path[self.path.index(parts.netloc) + len(parts.netloc) :]
        )
        self._key, self._query = unquote(parts.path).lstrip("/"), parts.query
        body = self._body()
        delay, rule = self.server.chooser.choose(self.command, self._key, self._query, self.headers.get("Range", ""))
        if delay and self.server.closing.wait(delay):
            self.close_connection = True
            return
        fault = rule.fault if rule else ""
        if rule and fault in ERRORS and fault != "absent_is_denied":
            self._refuse(fault)
        elif rule and fault in {"silent", "reset_before"}:
            self._say_nothing(fault, rule.seconds)
        else:
            self._pass_on(path, body, rule)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _pass_on(self, path: str, body: bytes, rule: Rule | None) -> None:
        self._upstream.putrequest(self.command, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in HOP_BY_HOP:
                self._upstream.putheader(name, value)
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            self._upstream.putheader("Content-Length", str(len(body)))
        self._upstream.endheaders(body)
        answer = self._upstream.getresponse()
        if rule and rule.fault == "absent_is_denied":
            if answer.status == 404:
                answer.read()
                self._refuse(rule.fault)
                return
            rule = None
        self._hand_back(answer, rule)

    def _hand_back(self, answer: http.client.HTTPResponse, rule: Rule | None) -> None:
        fault = rule.fault if rule else ""
        if fault in ODD:
            status, headers, body = odd_answer(fault, answer.status, answer.getheaders(), answer.read())
            self._note(status, len(body), fault)
            self._head(status, headers)
            self.wfile.write(body)
            return
        headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in HOP_BY_HOP | {"content-length"}]
        whole: bytes | None = None
        length = answer.length if self.command != "HEAD" else int(answer.headers.get("Content-Length", 0))
        if length is None:
            whole = answer.read()
            length = len(whole)
        cut = fault in {"reset_within", "cut_short", "cut_unmarked", "cut_relabelled"}
        sent = 0 if self.command == "HEAD" else length // 2 if cut else length
        if fault == "cut_unmarked":
            headers.append(("Connection", "close"))
        else:
            headers.append(("Content-Length", str(sent if fault == "cut_relabelled" else length)))
        self._note(answer.status, sent, fault)  # before the client can go on
        self._head(answer.status, headers)
        if rule and fault == "slow_first_byte":
            self.server.closing.wait(rule.seconds)
        for piece in _pieces(answer, whole, sent):
            self.wfile.write(piece)
        if not cut:
            answer.read()  # nothing is left of it, and the connection may be used again
        else:
            if fault == "reset_within":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
                time.sleep(0.005)  # what was written is on its way before the reset
            self.close_connection = True
            self._upstream.close()

    def _refuse(self, fault: str) -> None:
        status, code, text = ERRORS[fault]
        document = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{text}</Message></Error>'
        )
        body = b"" if self.command == "HEAD" else document.encode()
        headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
        if status == 429:
            headers.append(("Retry-After", "1"))
        self._note(status, len(body), fault)
        self._head(status, headers)
        self.wfile.write(body)

    def _say_nothing(self, fault: str, seconds: float) -> None:
        self._note(0, 0, fault)
        self.close_connection = True
        if fault == "silent":
            self.server.closing.wait(seconds)
        else:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)

    def _head(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}", *(f"{n}: {v}" for n, v in headers)]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def _note(self, status: int, nbytes: int, fault: str) -> None:
        self.server.exchanges.append(
            Exchange(
                method=self.command, key=self._key, query=self._query, range=self.headers.get("Range", ""),
                status=status, nbytes=nbytes, fault=fault,
            )
        )  # fmt: skip


def _pieces(answer: http.client.HTTPResponse, whole: bytes | None, nbytes: int) -> Iterator[bytes]:
    """Yield the first bytes of an answer, piece by piece."""
    if whole is not None:
        yield whole[:nbytes]
        return
    while nbytes > 0 and (piece := answer.read(min(PIECE, nbytes))):
        nbytes -= len(piece)
        yield piece
