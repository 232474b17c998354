"""One interface over a disk and a bucket, whichever library reaches it: the same answers from all."""

from pathlib import Path

import pytest

from headrace.objects import ObjectFolder, open_folder
from headrace.schemas.errors import ConfigError
from s3_server import CLIENTS, Bucket


@pytest.fixture(params=["disk", *CLIENTS])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectFolder:
    if request.param == "disk":
        return open_folder(tmp_path / "folder")
    bucket: Bucket = request.getfixturevalue("bucket").through(request.param)
    return open_folder(f"{bucket.url}/some/folder", bucket.storage)


def test_what_is_written_is_read(folder: ObjectFolder):
    folder.write("a/b.bin", b"\x00\x01")
    folder.write("a/b.bin", b"again")
    assert folder.read("a/b.bin") == b"again"


def test_what_is_not_there_is_said(folder: ObjectFolder):
    assert folder.stat("absent") is None
    assert folder.names() == []
    with pytest.raises(FileNotFoundError, match="absent"):
        folder.read("absent")
    folder.delete("absent")


def test_names_lists_whatever_begins_with_a_text(folder: ObjectFolder):
    for name in ("parts/2.parquet", "parts/10.parquet", "parts.json", "z"):
        folder.write(name, b"x")
    assert folder.names() == ["parts.json", "parts/10.parquet", "parts/2.parquet", "z"]
    assert folder.names("parts/") == ["parts/10.parquet", "parts/2.parquet"]
    assert folder.names("parts/1") == ["parts/10.parquet"]
    assert folder.names("pa") == ["parts.json", "parts/10.parquet", "parts/2.parquet"]


def test_stat_is_what_stats_says_and_changes_with_the_content(folder: ObjectFolder):
    folder.write("x", b"first")
    before = folder.stat("x")
    assert before is not None
    assert before.nbytes == 5
    assert folder.stats() == {"x": before}
    folder.write("x", b"other")
    after = folder.stat("x")
    assert after is not None
    assert after.fingerprint != before.fingerprint


def test_deleted_is_gone(folder: ObjectFolder):
    folder.write("x", b"1")
    folder.delete("x")
    assert folder.names() == []


@pytest.mark.parametrize("client", CLIENTS)
def test_listing_goes_on_after_a_thousand(bucket: Bucket, client: str):
    for i in range(1003):
        (bucket.path / f"{i:04d}").write_bytes(b"")
    assert open_folder(bucket.url, bucket.through(client).storage).names() == [f"{i:04d}" for i in range(1003)]


@pytest.mark.parametrize("url", ["s3://", "s3:///x", "s3://KEY:SECRET@bucket/x", "s3://bucket/a//b", "gs://bucket/x"])
def test_other_urls_are_refused_without_repeating_a_secret(url: str):
    with pytest.raises(ConfigError) as caught:
        open_folder(url)
    assert "SECRET" not in str(caught.value)
