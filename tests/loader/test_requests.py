"""What a caller may ask of a loader: mistakes are refused by name, changes equal a fresh index."""

import re
from typing import Any

import pytest

import headrace
from build_here import build_here
from headrace.schemas.config import MissingConfig, NormalizationConfig, WindowConfig
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError
from headrace.schemas.windows import WindowSpec
from oracle_loader import OracleLoader, check_epoch


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"split": "training"}, "no such split"),
        ({"split": "valid"}, "has no window"),
        ({"datasets": ["rivers"]}, "no such data set"),
        ({"datasets": []}, "no such data set"),
        ({"datasets": "river"}, "not a list of names"),
        ({"basins": ["01000500", "01000501"]}, "01000501"),
        ({"basins": {"river": ["c1"]}}, "c1"),
        ({"basins": {"rivers": ["01000500"]}}, "no such data set"),
        ({"basins": "01000500"}, "not a list of names"),
        ({"basins": [1000500]}, "not a list of names"),
        ({"basins": {"river": [], "creek": []}}, "has no window"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"num_workers": -1}, "num_workers"),
        ({"num_workers": "many"}, "num_workers"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"memory_budget": "much"}, "memory_budget"),
        ({"window": {"hindcast": 3}}, "hindcast"),
        ({"window": {"hindcast_length": 3, "warmup_length": 9}}, "warmup_length"),
        ({"window": {"hindcast_length": 500}}, "has no window"),
        ({"missing": {"missing_policy": "ignore"}}, "missing_policy"),
        ({"missing": {"absent_chunk": "missing"}}, r"missing\.absent_chunk"),
        ({"missing": {"on_bad_chunk": "missing"}}, r"missing\.on_bad_chunk"),
        ({"missing": {"static_missing": "impute"}}, r"missing\.static_missing"),
        ({"normalization": {"scope": "world"}}, "scope"),
        ({"sampling": {"mode": "balanced"}}, "balanced_by_dataset"),
        ({"sampling": {"max_windows_per_basin": 0}}, "max_windows_per_basin"),
        ({"weights": {"rivers": 1.0}}, "rivers"),
        ({"weights": {"river": 0.0}}, "above 0"),
        ({"weights": {"river": "much"}}, "above 0"),
        ({"weights": {"river": float("nan")}}, "above 0"),
        ({"weights": ["river"]}, "(?s)weights are not valid.*a mapping"),
        ({"split": 3}, "no such split"),
        ({"datasets": 7}, "not a list of names"),
        ({"basins": 7}, "not a list of names"),
        ({"missing": "drop"}, r"WindowLoader\(missing="),
        ({"window": 3}, r"WindowLoader\(window="),
        ({"window": MissingConfig()}, r"WindowLoader\(window="),
        ({"sampling": "x"}, r"WindowLoader\(sampling="),
        ({"normalization": ["global"]}, r"WindowLoader\(normalization="),
        ({"shuffle": "no"}, "shuffle"),
        ({"drop_last": 1}, "drop_last"),
        ({"rank_local": "yes"}, "rank_local"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": -1.0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"timeout": "long"}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"cache_dir": 3}, "cache_dir"),
        ({"cache_dir": ""}, "cache_dir"),
        ({"cache_dir": "a\0b"}, "cache_dir"),
        ({"memory_budget": [1]}, "memory_budget"),
        ({"memory_budget": float("nan")}, "memory_budget"),
        ({"memory_budget": float("inf")}, "memory_budget"),
        ({"device": "tpu"}, r"(?s)device cannot be used.*to fix"),
        ({"device": 3.5}, "device cannot be used"),
        ({"device": "meta:x"}, "device cannot be used"),
        ({"device": "meta"}, "device cannot be used"),
        ({"rank": 0, "world_size": 2.0}, "world_size"),
        ({"rank": "0", "world_size": 2}, "rank"),
    ],
)
def test_a_mistake_is_a_configuration_error_that_names_it(index, given, words):
    settings: dict[str, Any] = {"split": "train", **given}
    with pytest.raises(ConfigError, match=re.compile(words)):
        headrace.WindowLoader(index, settings.pop("split"), **settings)


@pytest.mark.parametrize("no_index", ["index/", None])
def test_a_folder_is_no_opened_index(no_index):
    for serve in (headrace.WindowLoader, headrace.WindowDataset):
        with pytest.raises(ConfigError, match=r"(?s)not opened.*headrace\.open_index"):
            serve(no_index, "train")


CHANGES: list[dict[str, Any]] = [
    {"window": {"hindcast_length": 4, "forecast_length": 2, "warmup_length": 3, "stride": 1}},
    {"window": {"hindcast_length": 10, "forecast_length": 0, "warmup_length": 0, "stride": 3}},
    {"window": {"hindcast_length": 1, "forecast_length": 0, "warmup_length": 0, "stride": 1}},
    {"missing": {"target_nan_policy": "keep", "missing_policy": "fill_and_mask"}},
    {"missing": {"target_nan_policy": "drop_all_nan", "missing_policy": "drop"}},
    {"normalization": {"method": "standard", "scope": "global"}},
    {"normalization": {"method": "standard", "scope": "per_dataset"}},
    {"normalization": {"method": "standard", "scope": "per_basin"}},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_changed_request_equals_a_fresh_index_and_the_oracle(joint, index, tmp_path, change, split):
    data = joint.config.as_dict()
    for section, values in change.items():
        data[section] = {**data[section], **values}
    config = parse_config(data)
    oracle = OracleLoader(config, split)
    with headrace.open_index(build_here(config, tmp_path / "fresh")) as fresh:
        settings: dict[str, Any] = {"batch_size": 50, "seed": 1, "shuffle": True}
        with (
            headrace.WindowLoader(fresh, split, **settings) as asked_of_fresh,
            headrace.WindowLoader(index, split, **settings, **change) as asked,
        ):
            assert asked.num_windows == asked_of_fresh.num_windows == len(oracle.windows)
            check_epoch(list(asked_of_fresh), oracle, asked_of_fresh)
            check_epoch(list(asked), oracle, asked)


def test_sections_may_be_given_as_objects(index):
    shape = {"hindcast_length": 4, "forecast_length": 2, "warmup_length": 3}
    found = []
    for window in (shape, WindowConfig(**shape), WindowSpec(**shape)):
        with headrace.WindowLoader(
            index,
            "train",
            window=window,
            missing=MissingConfig(target_nan_policy="keep"),
            normalization=NormalizationConfig(method="none"),
        ) as loader:
            found.append((loader.num_windows, loader.spec_digest))
            assert loader.window == WindowSpec(**shape)
    assert len(set(found)) == 1


def test_basins_may_be_named_for_some_data_sets_or_across_all(joint, index):
    every = {"river": ["01000500", "01002500"], "creek": ["c2"]}
    choices: list[tuple[Any, dict[str, Any]]] = [
        ({"creek": ["c2"]}, {"creek": ["c2"]}),
        (every, every),
        (["01002500", "c2", "01000500", "c2"], every),
        ({"river": []}, {"river": []}),
    ]
    for given, wanted in choices:
        oracle = OracleLoader(joint.config, "train", basins=wanted, normalization={"method": "standard"})
        with headrace.WindowLoader(index, "train", basins=given, normalization={"method": "standard"}) as loader:
            check_epoch(list(loader), oracle, loader)


def test_the_order_of_data_sets_is_that_of_the_configuration(index):
    with headrace.WindowLoader(index, "train", datasets=["creek", "river"]) as loader:
        assert loader.dataset_ids == ["river", "creek"]
        assert [ids[0] for ids in loader.basin_ids] == ["01000500", "c0"]
