"""Answers that are not quite S3's: none is taken for an absent object, and none keeps a request going for ever."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import zarr

from headrace.index_content import content_of
from headrace.objects import open_folder
from headrace.objects.client import S3Client
from headrace.open_store import open_group
from headrace.schemas.errors import StorageError
from headrace.schemas.storage_config import StorageConfig
from headrace.store import stat_object
from s3_server import CLIENTS, Bucket

NO_SUCH_KEY = b"<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"


class OddServer(ThreadingHTTPServer):
    """Gives every request one answer."""

    daemon_threads = True
    answer: tuple[int, bytes] = (200, b"")
    asked = 0
    client = "auto"

    @property
    def storage(self) -> StorageConfig:
        """How it is reached."""
        url = f"http://127.0.0.1:{self.server_port}"
        given = {"client": self.client, "endpoint_url": url, "anon": True, "max_retries": 1, "timeout_seconds": 5}
        return StorageConfig.model_validate(given)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that leave."""


class Answering(BaseHTTPRequestHandler):
    server: OddServer

    def do_GET(self) -> None:
        self.server.asked += 1
        status, body = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(params=CLIENTS)
def server(request: pytest.FixtureRequest) -> Iterator[OddServer]:
    with OddServer(("127.0.0.1", 0), Answering) as odd:
        odd.client = request.param
        threading.Thread(target=odd.serve_forever, args=(0.05,), daemon=True).start()
        yield odd
        odd.shutdown()


def listing(*keys: str) -> tuple[int, bytes]:
    rows = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>0</Size></Contents>"
        for key in keys
    )
    return 200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()


@pytest.mark.parametrize("body", [b"", b"<html>no such page</html>"])
def test_only_an_object_stores_document_proves_an_object_absent(server: OddServer, body: bytes):
    """A3: a gateway that lost its way says "not found" too."""
    folder = open_folder("s3://bucket/index", server.storage)
    server.answer = 404, body
    with pytest.raises(StorageError, match=r"refuses the request[\s\S]*404"):
        folder.read("x")
    server.answer = 404, NO_SUCH_KEY
    with pytest.raises(FileNotFoundError):
        folder.read("x")


@pytest.mark.parametrize("body", [b"", b"<html>Please log in</html>"])
def test_an_answer_that_tells_neither_etag_nor_time_is_another_object_than_any_that_was_listed(
    server: OddServer, body: bytes
):
    server.answer = 200, body
    found = S3Client("bucket", server.storage).get("x")
    assert found is not None
    assert bytes(found.data) == body
    assert found.stat.fingerprint == f"{len(body)}:19700101T000000Z"


def test_a_folder_that_a_console_made_is_empty(server: OddServer):
    server.answer = listing("index/")
    assert content_of("s3://bucket/index", server.storage) == []
    assert open_folder("s3://bucket/index", server.storage).names() == []


@pytest.mark.parametrize(
    "body", [b"", b"<html><body>Please log in</body></html>", b"<!DOCTYPE html><p>Please<br>log in", b"<Error/>"]
)
def test_an_answer_that_is_no_listing_lists_nothing_as_absent(server: OddServer, body: bytes):
    """A3: of a page that the network puts in the way no chunk and no index follows."""
    server.answer = 200, body
    folder = open_folder("s3://bucket/index", server.storage)
    for look in (folder.names, lambda: content_of("s3://bucket/index", server.storage)):
        with pytest.raises(StorageError, match=r"s3://bucket/index at http://127"):
            look()


def test_a_listing_without_what_was_read_from_the_folder_is_refused(bucket: Bucket, monkeypatch: pytest.MonkeyPatch):
    array = zarr.create_array(str(bucket.path / "s.zarr" / "flow"), shape=(4,), chunks=(2,), dtype="f4")
    array[:] = 1
    zarr.create_group(str(bucket.path / "s.zarr"))
    found = open_group(f"{bucket.url}/s.zarr", bucket.storage)["flow"]
    monkeypatch.setattr(S3Client, "listing", lambda *_, **__: {})
    assert isinstance(found, zarr.Array)
    with pytest.raises(StorageError, match=r"not complete[\s\S]*s\.zarr/flow at http"):
        stat_object(found, "", "flow", "flow/c/0")


def test_a_listing_that_begins_again_ends(server: OddServer):
    """Some servers do not know start-after."""
    server.answer = listing(*(f"index/{i:04d}" for i in range(1000)))
    with pytest.raises(StorageError, match="was to go on after index/0999 came to index/0999"):
        open_folder("s3://bucket/index", server.storage).names()
    assert server.asked == 2


def test_a_key_that_cannot_be_named_is_said_and_not_taken_for_no_answer(server: OddServer):
    server.answer = listing("index/a//b")
    with pytest.raises(StorageError, match=r"refuses the request[\s\S]*empty path segment"):
        open_folder("s3://bucket/index", server.storage).names()
