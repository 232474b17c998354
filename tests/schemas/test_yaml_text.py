"""YAML reads as written: ids and dates stay text, numbers are numbers, nothing is lost silently."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.yaml_text import read_yaml, write_yaml

# Line separators and a byte order mark mean something to YAML itself, inside quotes too.
characters = st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"], exclude_characters="\ufeff")
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(characters)
documents = st.recursive(
    plain, lambda inner: st.lists(inner) | st.dictionaries(st.text("abé01-.: "), inner), max_leaves=8
)
awkward = [
    "01013500",
    "12_345",
    "1980-10-01",
    "12:30",
    "no",
    "NO",
    "1e-3",
    "0o17",
    "null",
    "~",
    "=",
    "<<",
    "1.",
    "-",
    "é水",
    " a ",
]


@pytest.mark.parametrize(
    "text",
    ["01013500", "12_345", "0o17", "1980-10-01", "2000-01-01 06:00", "12:30", "NO", "on", "yes", "1.2.3", "--", "1e"],
)
def test_what_is_no_number_of_yaml_1_2_stays_text(text: str) -> None:
    assert read_yaml(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("-7", -7), ("54001", 54001), ("0x1F", 31),
        ("1e-3", 0.001), ("1.0e-3", 0.001), ("2E5", 200_000.0), ("1.", 1.0), (".5", 0.5), ("-.5", -0.5),
        (".inf", math.inf), ("-.inf", -math.inf), ("true", True), ("False", False), ("~", None), ("", None),
    ],
)  # fmt: skip
def test_numbers_truth_values_and_null_are_read(text: str, value: object) -> None:
    found = read_yaml(text)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_read() -> None:
    assert math.isnan(read_yaml(".nan"))


@given(documents)
def test_what_is_written_reads_back_equal_in_value_and_type(data: object) -> None:
    found = read_yaml(write_yaml(data))
    assert found == data
    assert repr(found) == repr(data)


def test_text_that_looks_like_something_else_is_written_for_every_yaml_reader() -> None:
    assert read_yaml(write_yaml(awkward)) == awkward
    assert yaml.safe_load(write_yaml(awkward)) == awkward


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", r"'a' appears twice \(line 3\)"),
        ("x:\n  y: {k: 1, k: 1}\n", r"'k' appears twice \(line 2\)"),
        ("? [a]\n: 1\n", r"\['a'\] is not a plain name \(line 1\)"),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
    ],
)
def test_repeated_odd_and_unsafe_keys_are_refused_with_their_line(text: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError, match=message):
        read_yaml(text)


def test_own_keys_win_over_merged_ones() -> None:
    text = "base: &base {weight: 1.0, id_width: 8}\na:\n  <<: *base\n  weight: 2.0\nb: {<<: [*base, {c: 3}]}\n"
    found = read_yaml(text)
    assert found["a"] == {"weight": 2.0, "id_width": 8}
    assert found["b"] == {"weight": 1.0, "id_width": 8, "c": 3}
