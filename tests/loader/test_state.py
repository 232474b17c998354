"""Loader states: plain values, read back only where they belong."""

import json

import pytest

from headrace.loader.state import LoaderState
from headrace.schemas.errors import ConfigError, StaleIndexError

STATE = LoaderState(
    index_digest="i", spec_digest="s", seed=3, epoch=2, round_steps=500, windows_consumed=64
)  # fmt: skip


def test_a_state_survives_json():
    data = json.loads(json.dumps(STATE.as_dict()))
    assert LoaderState.from_dict(data, index_digest="i", spec_digest="s") == STATE


def test_a_state_of_another_index_is_stale():
    with pytest.raises(StaleIndexError, match="another index"):
        LoaderState.from_dict(STATE.as_dict(), index_digest="j", spec_digest="s")


def test_a_state_of_other_settings_is_refused():
    with pytest.raises(ConfigError, match="other settings"):
        LoaderState.from_dict(STATE.as_dict(), index_digest="i", spec_digest="t")


@pytest.mark.parametrize(
    "damage",
    [{"format": 99}, {"seed": None}, {"epoch": "two"}, {"windows_consumed": -1}, {"extra": 1}, {"round_steps": 1.5}],
)
def test_a_damaged_state_is_refused(damage):
    with pytest.raises(ConfigError, match="state cannot be read"):
        LoaderState.from_dict({**STATE.as_dict(), **damage}, index_digest="i", spec_digest="s")


@pytest.mark.parametrize("data", [{}, {"epoch": 1}])
def test_a_state_without_its_fields_is_refused(data):
    with pytest.raises(ConfigError, match="state cannot be read"):
        LoaderState.from_dict(data, index_digest="i", spec_digest="s")
