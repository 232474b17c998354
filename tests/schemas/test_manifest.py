"""The manifest: what is written reads back, and whatever is damaged is refused by name."""

import json
from dataclasses import replace
from typing import Any

import pytest

from headrace.schemas.config import Config
from headrace.schemas.errors import IndexFormatError
from headrace.schemas.manifest import IndexManifest, TableEntry
from headrace.schemas.tables import FORMAT_VERSION, TABLES

WHERE = "index/manifest.json"


def manifest() -> IndexManifest:
    dataset = {"timeseries": "é.zarr", "variables": {"target": {"q": {"physical": "q", "missing_values": [-999]}}}}
    return IndexManifest(
        config=Config.model_validate({"datasets": {"a": dataset}}),
        tables={
            n: TableEntry(path=f"{n}.parquet", num_rows=i, nbytes=9, sha256=f"{i:064x}") for i, n in enumerate(TABLES)
        },
        parts=("b.parquet", "a.parquet"),
    )


def read(**changes: Any) -> IndexManifest:
    """Read a manifest with some of its fields changed."""
    return IndexManifest.from_json(json.dumps({**json.loads(manifest().to_json()), **changes}), WHERE)


def test_manifest_reads_back_and_writes_the_same_bytes() -> None:
    text = manifest().to_json()
    again = IndexManifest.from_json(text, WHERE)
    assert again == replace(manifest(), parts=("a.parquet", "b.parquet"))
    assert again.to_json() == text
    assert read() == again


def test_digest_changes_with_the_content_of_any_table_and_with_nothing_else() -> None:
    plain = manifest()
    digests = {plain.index_digest}
    for name, entry in plain.tables.items():
        digests.add(replace(plain, tables={**plain.tables, name: replace(entry, sha256="f" * 64)}).index_digest)
    assert len(digests) == 1 + len(TABLES)
    backwards = dict(reversed(plain.tables.items()))
    assert replace(plain, tables=backwards, parts=()).index_digest == plain.index_digest


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '"format"', "null", "{}", '{"format": "headrace-index"}'])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(IndexFormatError, match="manifest cannot be read") as caught:
        IndexManifest.from_json(text, WHERE)
    assert WHERE in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1, str(FORMAT_VERSION), None])
def test_other_versions_are_refused_with_both_numbers(version: object) -> None:
    with pytest.raises(IndexFormatError, match=f"headrace-index version {FORMAT_VERSION}\n.*version {version}"):
        read(format_version=version)


def test_other_formats_are_refused() -> None:
    with pytest.raises(IndexFormatError, match=r"got: +zarr version"):
        read(format="zarr")


@pytest.mark.parametrize(
    "changes",
    [
        {"tables": None},
        {"tables": []},
        {"tables": {"runs": 5}},
        {"tables": {"runs": {"path": "runs.parquet"}}},
        {"config": {}},
        {"config": {"datasets": {"a": {"timeseries": "t", "unknown": 1}}}},
        {"parts": 5},
        {"index_digest": "0" * 16},
        {"index_digest": None},
    ],
)
def test_damaged_manifest_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(IndexFormatError, match="manifest is damaged"):
        read(**changes)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_missing_table_is_named(name: str) -> None:
    tables = json.loads(manifest().to_json())["tables"]
    del tables[name]
    with pytest.raises(IndexFormatError, match=f"got: +no {name}\n"):
        read(tables=tables)
