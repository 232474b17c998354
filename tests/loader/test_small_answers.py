"""What an open index has answered it does not ask DuckDB again, while the answer is small."""

import pyarrow as pa
import pytest

import headrace
from headrace.loader import catalog, small_answers
from headrace.loader.small_answers import SmallAnswers
from headrace.schemas.errors import ConfigError


def table(rows: int) -> pa.Table:
    return pa.table({"a": pa.array(range(rows), pa.int64())})


def test_the_next_loader_of_an_index_asks_nothing_again(joint, monkeypatch):
    asked: list[str] = []
    real = catalog.query
    monkeypatch.setattr(catalog, "query", lambda name: asked.append(name) or real(name))
    with headrace.open_index(joint.index) as index:
        with headrace.WindowLoader(index, "train", batch_size=64) as first:
            before = first.num_windows
        assert asked
        del asked[:]
        with headrace.WindowLoader(index, "train", batch_size=64) as second:
            assert second.num_windows == before
        assert asked == []
        index.fetch("basins", dataset_id="creek")
        index.fetch("basins", dataset_id="river")
        assert index.fetch("basins", dataset_id="creek") != index.fetch("basins", dataset_id="river")
    with pytest.raises(ConfigError, match="index is closed"):
        index.fetch("datasets")


def test_large_answers_and_those_beyond_the_room_are_asked_for_again(monkeypatch):
    monkeypatch.setattr(small_answers, "LARGEST", 80)
    monkeypatch.setattr(small_answers, "ALL", 100)
    asked: list[str] = []

    def ask(name: str, parameters: dict[str, object]) -> pa.Table:
        asked.append(name)
        return table(int(str(parameters["rows"])))

    answers = SmallAnswers()
    for name, rows in (("small", 10), ("large", 11), ("beyond", 3), ("little", 2)):
        for _ in range(2):
            assert answers.get(name, {"rows": rows}, ask).num_rows == rows
    assert asked == ["small", "large", "large", "beyond", "beyond", "little"]
    answers.clear()
    answers.get("small", {"rows": 10}, ask)
    assert asked[-1] == "small"
