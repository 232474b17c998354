"""Loader states: plain values, read back only where they belong."""

import json
from typing import Any

import pytest

from headrace.loader.state import LoaderState
from headrace.schemas.errors import ConfigError, StaleIndexError

STATE = LoaderState(
    index_digest="i", spec_digest="s", seed=3, epoch=2, round_steps=500, windows_consumed=64, epoch_windows=90
)  # fmt: skip
BY_RANK = LoaderState(
    index_digest="i", spec_digest="s", seed=3, epoch=2, round_steps=500, windows_consumed=64, epoch_windows=90,
    by_rank=[[33, 46], [31, 44]],
)  # fmt: skip


@pytest.mark.parametrize("state", [STATE, BY_RANK])
def test_a_state_survives_json(state):
    data = json.loads(json.dumps(state.as_dict()))
    assert LoaderState.from_dict(data, index_digest="i", spec_digest="s") == state


def test_a_state_of_another_index_is_stale():
    with pytest.raises(StaleIndexError, match="another index"):
        LoaderState.from_dict(STATE.as_dict(), index_digest="j", spec_digest="s")


def test_a_state_of_other_settings_is_refused():
    with pytest.raises(ConfigError, match="other settings"):
        LoaderState.from_dict(STATE.as_dict(), index_digest="i", spec_digest="t")


@pytest.mark.parametrize(
    "damage",
    [
        {"format": 99}, {"format": "2"}, {"seed": None}, {"epoch": "two"}, {"windows_consumed": -1}, {"extra": 1},
        {"round_steps": 1.5}, {"epoch_windows": None},
        {"windows_consumed": 0, "epoch_windows": 0}, {"windows_consumed": 91}, {"by_rank": [[64, 91]]},
        {"by_rank": []}, {"by_rank": "ab"}, {"by_rank": [[64]]}, {"by_rank": [[64, True], [0, 89]]},
        {"by_rank": [[50, 40], [14, 50]]},
    ],
)  # fmt: skip
def test_a_damaged_state_is_refused(damage):
    with pytest.raises(ConfigError, match="state cannot be read"):
        LoaderState.from_dict({**STATE.as_dict(), **damage}, index_digest="i", spec_digest="s")


@pytest.mark.parametrize("data", [{}, {"epoch": 1}, None, "state", [1, 2], {"format": 3}])
def test_what_is_no_state_is_refused(data: Any):
    with pytest.raises(ConfigError, match="state cannot be read"):
        LoaderState.from_dict(data, index_digest="i", spec_digest="s")


def test_a_state_of_an_earlier_version_is_refused_by_its_format():
    old = {name: value for name, value in STATE.as_dict().items() if name not in ("epoch_windows", "by_rank")}
    with pytest.raises(ConfigError, match=r"(?s)expected: format 3.*got: +format 1"):
        LoaderState.from_dict({**old, "format": 1}, index_digest="i", spec_digest="s")


def test_a_state_beyond_the_split_is_refused():
    assert STATE.goes_on([90])
    with pytest.raises(ConfigError, match=r"(?s)cannot be read.*at most 89 windows"):
        STATE.goes_on([89])
    assert BY_RANK.goes_on([46, 44])
    with pytest.raises(ConfigError, match="cannot be read"):
        BY_RANK.goes_on([45, 45])


@pytest.mark.parametrize(("state", "loads"), [(STATE, [45, 45]), (BY_RANK, [90]), (BY_RANK, [30, 30, 30])])
def test_the_middle_of_an_epoch_goes_on_only_where_it_is_shared_out_alike(state, loads):
    with pytest.raises(ConfigError, match="shared out otherwise"):
        state.goes_on(loads)
