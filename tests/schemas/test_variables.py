"""Variables as configured, and decode rules as text."""

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headrace.schemas.variables import DecodeRule, VariableConfig, rule_from_json, rule_to_json

numbers = st.floats(allow_nan=False)
rules = st.builds(
    DecodeRule,
    missing_values=st.lists(st.floats(), max_size=3).map(tuple),
    cf_scale=numbers,
    cf_offset=numbers,
    scale=numbers,
    offset=numbers,
    area_factor=st.none() | numbers,
    area_array=st.none() | st.text("aé_0"),
    valid_min=st.none() | numbers,
    valid_max=st.none() | numbers,
    absent_is_missing=st.booleans(),
)


@given(rules)
def test_rule_comes_back_from_its_text_bit_for_bit(rule: DecodeRule) -> None:
    again = rule_from_json(rule_to_json(rule))
    assert repr(again) == repr(rule)
    assert again.digest() == rule.digest()


def test_digest_changes_with_every_field() -> None:
    rule = DecodeRule()
    other: dict[str, Any] = {"missing_values": (-999.0,), "area_array": "area", "absent_is_missing": True}
    changed = [replace(rule, **{f.name: other.get(f.name, 2.5)}) for f in fields(rule)]
    assert len({r.digest() for r in [rule, *changed]}) == 1 + len(fields(rule))


def test_equal_rules_have_equal_text_wherever_their_numbers_came_from() -> None:
    plain = DecodeRule(missing_values=(-999.0,), cf_scale=1.0, offset=0.5, valid_min=0.0)
    made = DecodeRule(missing_values=(np.int16(-999),), cf_scale=1, offset=np.float64(0.5), valid_min=np.float32(0))  # type: ignore[arg-type]
    assert rule_to_json(made) == rule_to_json(plain)
    assert made.digest() == plain.digest()


def test_one_missing_value_needs_no_list() -> None:
    assert VariableConfig.model_validate({"physical": "q", "missing_values": -999}).missing_values == (-999.0,)
    assert VariableConfig(physical="q").missing_values == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"physical": ""}, "at least 1 character"),
        ({"scale": 0}, "scale must not be 0"),
        ({"scale": math.inf}, "finite"),
        ({"offset": math.nan}, "finite"),
        ({"fill_value": math.nan}, "finite"),
        ({"valid_min": math.nan}, "finite"),
        ({"valid_min": 1, "valid_max": 0}, "valid_min 1.0 is above valid_max 0.0"),
        ({"per_area": "area"}, "per_area needs unit"),
        ({"missing_policy": "keep"}, "fill_and_mask"),
        ({"unknown": 1}, "Extra inputs"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        VariableConfig.model_validate({"physical": "q", **settings})


def test_configured_variables_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        VariableConfig(physical="q").scale = 2.0
