"""Basin ids that lost their zeros or occur twice: the loader serves the rows that the configuration means (B1, B3)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from build_here import build_here
from command_line import run_headrace
from encoding import decode_value
from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError
from synthetic import write_attributes, write_store

STEPS = 12


def index_of(folder: Path, ids: list[str], slopes: list[float], id_dtype: str = "str", **section: Any) -> Path:
    """Index a store with the given ids, row by row, and attributes in the opposite order."""
    store = write_store(folder / "s.zarr", basins=ids, steps=STEPS, variables=("rain", "flow"), id_dtype=id_dtype)
    write_attributes(folder / "a.zarr", ids[::-1], {"slope": slopes[::-1]}, id_dtype=id_dtype)
    given = {
        "timeseries": str(store.path),
        "attributes": str(folder / "a.zarr"),
        "t_range_train": ["2000-01-01", "2000-01-12"],
        "variables": {"relevant": ["rain"], "target": ["flow"], "constant": ["slope"]},
        **section,
    }
    window = {"hindcast_length": 3, "forecast_length": 0, "warmup_length": 0}
    config = {"datasets": {"d": given}, "window": window, "normalization": {"method": "none"}}
    return build_here(parse_config(config), folder / "index")


def rows_served(index_folder: Path, **options: Any) -> dict[str, tuple[set[int], set[float]]]:
    """Return store rows and slopes that each basin id is served from."""
    found: dict[str, tuple[set[int], set[float]]] = {}
    with (
        headrace.open_index(index_folder) as index,
        headrace.WindowLoader(index, "train", num_workers=1, **options) as loader,
    ):
        for batch in loader:
            for basin, x, y, static in zip(batch.basin.tolist(), batch.x, batch.y, batch.static, strict=True):
                rows, slopes = found.setdefault(loader.basin_ids[0][basin], (set(), set()))
                for values in (x[:, 0], y[:, 0]):
                    rows.update(np.unique(decode_value(values.numpy()).basin).tolist())
                slopes.update(static.tolist())
    return found


def test_ids_stored_as_integers_are_served_under_their_padded_name(tmp_path):
    ids = ["1013500", "11532500", "2177000"]
    index_folder = index_of(tmp_path, ids, [1.0, 2.0, 3.0], "int64", id_width=8)
    expected = {"01013500": ({0}, {1.0}), "11532500": ({1}, {2.0}), "02177000": ({2}, {3.0})}
    assert rows_served(index_folder) == expected
    assert rows_served(index_folder, basins=["02177000"]) == {"02177000": ({2}, {3.0})}
    with headrace.open_index(index_folder) as index, pytest.raises(ConfigError, match="2177000"):
        headrace.WindowLoader(index, "train", basins=["2177000"])
    assert run_headrace("check", "--index", index_folder).code == 0


@pytest.mark.parametrize(("policy", "row_of_a", "slope_of_a"), [("first", 0, 3.0), ("last", 2, 1.0)])
def test_of_several_rows_of_one_id_the_chosen_one_is_served(tmp_path, policy, row_of_a, slope_of_a):
    """The attributes store has them in the opposite order, and the policy counts in its own order there."""
    index_folder = index_of(tmp_path, ["A", "B", "A"], [1.0, 2.0, 3.0], duplicate_basins=policy)
    assert rows_served(index_folder) == {"A": ({row_of_a}, {slope_of_a}), "B": ({1}, {2.0})}
    assert run_headrace("check", "--index", index_folder).code == 0
