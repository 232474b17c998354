"""What a configuration may say, and what its defaults are."""

from typing import Any

import pytest
from pydantic import ValidationError

from headrace.schemas.config import SPLITS, Config, WindowConfig
from headrace.schemas.variables import VariableConfig
from headrace.schemas.windows import WindowSpec


def config(dataset: dict[str, Any] | None = None, **sections: Any) -> Config:
    return Config.model_validate({"datasets": {"a": {"timeseries": "a.zarr", **(dataset or {})}}, **sections})


def variables(**roles: Any) -> Config:
    return config({"variables": roles})


def test_default_window_is_365_steps_with_the_last_one_predicted() -> None:
    spec = config().window.spec()
    assert (spec.length, spec.target_length, spec.stride) == (365, 1, 1)
    assert spec == WindowSpec()


@pytest.mark.parametrize(
    ("hindcast", "forecast", "warmup", "expected"),
    [(364, 1, None, 364), (10, 5, None, 14), (10, 5, 0, 0), (0, 1, None, 0)],
)
def test_warmup_left_out_means_one_target_step(hindcast: int, forecast: int, warmup: int | None, expected: int) -> None:
    window = WindowConfig(hindcast_length=hindcast, forecast_length=forecast, warmup_length=warmup)
    assert window.spec().warmup_length == expected


@pytest.mark.parametrize("role", ["relevant", "target", "constant"])
def test_list_short_and_long_forms_of_a_variable_are_the_same(role: str) -> None:
    forms = [["q"], {"q": "q"}, {"q": {"physical": "q"}}]
    assert len({str(variables(**{role: form}).as_dict()) for form in forms}) == 1


def test_names_of_a_role_come_in_order_of_first_appearance() -> None:
    both = Config.model_validate(
        {
            "datasets": {
                "b": {"timeseries": "b", "variables": {"relevant": ["p", "t"], "target": ["q"]}},
                "a": {"timeseries": "a", "variables": {"relevant": ["r", "t"], "constant": ["area"]}},
            }
        }
    )
    assert both.names("input") == ("p", "t", "r")
    assert (both.names("target"), both.names("static")) == (("q",), ("area",))
    assert both.variables_of("a", "input") == {name: VariableConfig(physical=name) for name in ("r", "t")}


def test_period_of_each_split() -> None:
    dataset = {f"t_range_{split}": [f"200{i}-01-01", f"200{i}-12-31"] for i, split in enumerate(SPLITS)}
    found = config({**dataset, "t_range_valid": None}).datasets["a"]
    assert found.period("train") == ("2000-01-01", "2000-12-31")
    assert found.period("valid") is None
    assert found.period("test") == ("2002-01-01", "2002-12-31")


def test_numeric_ids_become_text_and_a_split_left_out_has_no_basins() -> None:
    assert config({"basins": [54001, "01013500"]}).datasets["a"].basins == ("54001", "01013500")
    split = config({"basins": {"train": ["01"], "test": "all"}}).datasets["a"].basins
    assert split.model_dump() == {"train": ("01",), "valid": (), "test": "all"}


def test_section_with_every_line_commented_out_is_the_default() -> None:
    assert config(window=None, storage=None) == config()


@pytest.mark.parametrize(
    ("dataset", "sections", "message"),
    [
        ({"timeseries": ""}, {}, "at least 1 character"),
        ({"weight": 0}, {}, "greater than 0"),
        ({"weight": float("inf")}, {}, "finite"),
        ({"id_width": 0}, {}, "greater than 0"),
        ({"fix_time": "guess"}, {}, "drop_duplicates"),
        ({"duplicate_basins": "keep"}, {}, "'error', 'first' or 'last'"),
        ({"basins": [1.5]}, {}, "basin id 1.5 is not text"),
        ({"basins": [False]}, {}, "basin id False is not text"),
        ({"basins": ["01", None]}, {}, "basin id None is not text"),
        ({"t_range_train": ["2000-01-01"]}, {}, "Field required"),
        ({"t_range_train": ["2000-01-01"] * 3}, {}, "at most 2 items"),
        ({"variables": {"relevant": ["q"], "target": ["q"]}}, {}, "under relevant and under target"),
        ({"variables": {"relevant": ["q"], "constant": ["q"]}}, {}, "under relevant and under constant"),
        ({"variables": {"target": ["q"], "constant": ["q"]}}, {}, "under target and under constant"),
        ({"variables": {"relevant": [{"q": "q_mm"}]}}, {}, "write a mapping"),
        ({}, {"window": {"hindcast_length": 0, "forecast_length": 0}}, "at least 1"),
        ({}, {"window": {"warmup_length": 365}}, "so that a target step remains"),
        ({}, {"window": {"stride": 0}}, "greater than 0"),
        ({}, {"missing": {"target_nan_policy": "drop"}}, "drop_any_nan"),
        ({}, {"missing": {"absent_chunk": "zero"}}, "valid_zero"),
        ({}, {"normalization": {"scope": "basin"}}, "per_basin"),
        ({}, {"sampling": {"mode": "random"}}, "balanced_by_dataset"),
        ({}, {"sampling": {"max_batches_per_epoch": 0}}, "greater than 0"),
        ({}, {"storage": {"concurrency": 0}}, "greater than 0"),
        ({}, {"storage": {"secret_access_key": "x"}}, "Extra inputs"),
        ({}, {"loader": {"batch_size": 0}}, "greater than 0"),
        ({}, {"loader": {"num_workers": -1}}, "greater than 0"),
        ({}, {"train": {"dropout": 1.0}}, "less than 1"),
        ({}, {"train": {"learning_rate": 0}}, "greater than 0"),
        ({}, {"datasets": {}}, "at least 1 item"),
    ],
)
def test_values_out_of_range_are_refused(dataset: dict[str, Any], sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(dataset, **sections)


def test_every_section_is_frozen() -> None:
    found = config({"variables": {"target": ["q"]}})
    parts: list[Any] = [found, found.datasets["a"], found.datasets["a"].variables]
    parts += [getattr(found, name) for name in Config.model_fields if name != "datasets"]
    for part in parts:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, next(iter(type(part).model_fields)), None)
