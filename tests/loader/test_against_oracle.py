"""The loader against the slow, obvious one of tests/support/oracle.py, over random stores and requests."""

import tempfile
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace
from build_here import build_here
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError
from headrace.schemas.windows import WindowSpec
from layouts import NAMES, StoreLayout, periods, store_layouts, window_specs
from oracle_loader import OracleLoader, check_epoch, windows_of
from synthetic import write_attributes

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
TARGET_POLICIES = ("keep", "drop_any_nan", "drop_all_nan")
INPUT_POLICIES = ("fill", "fill_and_mask", "drop")
EXAMPLES = 12
SCOPES = ("global", "per_dataset", "per_basin")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Stores, a configuration of them, and what to ask the loader for."""

    layouts: list[StoreLayout]
    data: dict[str, Any]
    attributes: list[dict[str, list[float]]]
    requests: list[dict[str, Any]]


def dates(layout: StoreLayout, period: tuple[int, int]) -> list[str]:
    """Return the first and last date of a period in steps."""
    gaps = {step: jump for step, jump in layout.gaps.items() if step + 1 < layout.steps}
    days = (p + sum(jump for step, jump in gaps.items() if step < p) for p in (period[0], period[1] - 1))
    return [(date(2000, 1, 1) + timedelta(days=d)).isoformat() for d in days]


@st.composite
def variable(draw: st.DrawFn, name: str, role: str) -> dict[str, Any]:
    found: dict[str, Any] = {"physical": name, "required": False}
    if draw(st.integers(0, 3)) == 0:
        found |= {"scale": draw(st.sampled_from([0.5, -2.0])), "offset": draw(st.sampled_from([0.0, 10.0]))}
    if draw(st.integers(0, 5)) == 0:
        found["valid_max"] = 300_000.0
    if role == "relevant":
        found["fill_value"] = draw(st.sampled_from([0.0, -1.5]))
        found["missing_policy"] = draw(st.sampled_from([None, None, None, *INPUT_POLICIES]))
    return found


@st.composite
def dataset(draw: st.DrawFn, layout: StoreLayout, inputs: list[str], targets: list[str]) -> dict[str, Any]:
    ids = [f"{1_000_500 + 1000 * row:08d}" for row in range(layout.basins)]
    some = st.lists(st.sampled_from(ids), min_size=1, unique=True)
    basins = draw(st.sampled_from(["all", "list", "splits"]))
    return {
        "basins": {"all": "all", "list": draw(some), "splits": {"train": draw(some), "test": draw(some)}}[basins],
        "t_range_train": dates(layout, draw(periods(layout.steps))),
        "t_range_test": dates(layout, draw(periods(layout.steps))),
        "variables": {
            "relevant": {n: draw(variable(n, "relevant")) for n in inputs},
            "target": {n: draw(variable(n, "target")) for n in targets},
            "constant": {n: {"physical": n, "required": False, "fill_value": 0.25} for n in ("area", "slope")},
        },
    }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = list(NAMES)
    split_at = draw(st.integers(1, 3))
    inputs, targets = names[:split_at], names[split_at : draw(st.integers(split_at + 1, 4))]
    layouts = [draw(store_layouts()) for _ in range(draw(st.integers(1, 2)))]
    shape = draw(window_specs(max_length=8))
    data: dict[str, Any] = {
        # Not in alphabetical order: the configuration's order counts.
        "datasets": {name: draw(dataset(layout, inputs, targets)) for name, layout in zip("ba", layouts, strict=False)},
        "window": shape._asdict(),
        "missing": {
            "target_nan_policy": draw(st.sampled_from(TARGET_POLICIES)),
            "missing_policy": draw(st.sampled_from(INPUT_POLICIES)),
            "absent_chunk": draw(st.sampled_from(["valid_zero", "missing"])),
            "static_missing": "impute",
        },
        "normalization": {
            "method": draw(st.sampled_from(["none", "standard"])),
            "scope": draw(st.sampled_from(SCOPES)),
        },
    }
    value = st.sampled_from([1.0, 2.0, 5.0, float("nan")])
    attributes = []
    for layout in layouts:
        columns = {"area": draw(st.lists(value, min_size=layout.basins, max_size=layout.basins))}
        if draw(st.booleans()):
            columns["slope"] = draw(st.lists(value, min_size=layout.basins, max_size=layout.basins))
        attributes.append(columns)
    requests = [draw(request(data)) for _ in range(2)]
    return Case(layouts=layouts, data=data, attributes=attributes, requests=requests)


@st.composite
def request(draw: st.DrawFn, data: dict[str, Any]) -> dict[str, Any]:
    """What differs from the index, and how it is served."""
    asked: dict[str, Any] = {
        "split": draw(st.sampled_from(["train", "train", "test"])),
        "batch_size": draw(st.sampled_from([1, 3, 16, 1000])),
        "shuffle": draw(st.booleans()),
        "num_workers": draw(st.integers(1, 3)),
        "tight": draw(st.booleans()),
        "epochs": draw(st.integers(1, 2)),
    }
    if draw(st.booleans()):
        asked["window"] = WindowSpec(**draw(window_specs(max_length=8))._asdict())
    if draw(st.booleans()):
        asked["missing"] = {
            "target_nan_policy": draw(st.sampled_from(TARGET_POLICIES)),
            "missing_policy": draw(st.sampled_from(INPUT_POLICIES)),
        }
    if draw(st.booleans()):
        asked["normalization"] = {"method": "standard", "scope": draw(st.sampled_from(SCOPES))}
    if len(data["datasets"]) > 1 and draw(st.booleans()):
        asked["datasets"] = [draw(st.sampled_from(sorted(data["datasets"])))]
    return asked


def write(case: Case, folder: Path) -> Config:
    for number, (name, layout) in enumerate(zip(case.data["datasets"], case.layouts, strict=True)):
        store = layout.write(folder / f"{name}.zarr", dataset=number)
        write_attributes(folder / f"{name}_attributes.zarr", store.basin_ids, case.attributes[number])
        case.data["datasets"][name] |= {
            "timeseries": str(store.path), "attributes": str(folder / f"{name}_attributes.zarr")
        }  # fmt: skip
    return parse_config(case.data)


def smallest_budget(oracle: OracleLoader, spec: WindowSpec) -> int:
    """Bytes of two pools of the shortest tile, doubled."""
    return 4 * 4 * (len(oracle.x_names) + len(oracle.y_names)) * spec.length


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(cases())
def test_every_window_is_served_once_with_the_right_values(case: Case) -> None:
    with tempfile.TemporaryDirectory() as name:
        config = write(case, Path(name))
        index_folder = build_here(config, Path(name) / "index")
        with headrace.open_index(index_folder) as index:
            for asked in case.requests:
                serve(index, config, dict(asked))


def serve(index: headrace.Index, config: Config, asked: dict[str, Any]) -> None:
    differing = {k: asked[k] for k in ("window", "missing", "normalization", "datasets") if k in asked}
    split, tight, epochs = (asked.pop(k) for k in ("split", "tight", "epochs"))
    oracle = OracleLoader(config, split, **differing)
    budget = smallest_budget(oracle, oracle.spec) if tight else "1GiB"
    if not oracle.windows:
        with pytest.raises(ConfigError, match="no window"):
            headrace.WindowLoader(index, split, memory_budget=budget, **asked)
        return
    with headrace.WindowLoader(index, split, memory_budget=budget, seed=3, **asked) as loader:
        assert (loader.x_names, loader.y_names) == (oracle.x_names, oracle.y_names)
        assert loader.static_names == oracle.static_names
        assert loader.num_windows == len(oracle.windows)
        for _ in range(epochs):
            batches = list(loader)
            assert len(batches) == len(loader)
            check_epoch(batches, oracle, loader)
            if not asked["shuffle"]:
                assert [w for batch in batches for w in windows_of(batch)] == oracle.windows
            assert all(torch.isfinite(batch.x).all() for batch in batches)
