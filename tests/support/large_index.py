"""An index of very many basins whose tables are made up directly: no store, no scan."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.indexer.write import write_index
from headrace.schemas.config_io import parse_config
from headrace.schemas.tables import TABLES
from headrace.schemas.time_axis import Segment, TimeAxis
from headrace.schemas.variables import DecodeRule, rule_to_json
from headrace.schemas.views import views_sql

INPUTS = ("precipitation", "temperature_max", "temperature_min", "solar_radiation")
TARGET = "streamflow"
STATICS = ("gauge_lat", "gauge_lon", "area")
DATASET = "many"
MANY_BASINS = 10_000
CHUNK_BASINS, CHUNK_STEPS = 50, 365
SPLITS = ("train", "valid", "test")


def write_large_index(out: Path, *, basins: int = MANY_BASINS, years: int = 40, holes: int = 2) -> Path:
    """Write an index of one data set with daily steps and return its folder.

    Parameters
    ----------
    out
        The folder.
    basins
        Number of basins.
    years
        Of 365 days in a calendar without leap days, from 1980 on.
    holes
        Gaps in the record of every basin and variable.
    """
    out.mkdir(parents=True)
    steps = 365 * years
    rng = np.random.default_rng(0)
    segment = Segment(start=0, stop=steps, seconds=315_360_000)
    axis = TimeAxis(segments=(segment,), step_seconds=86_400, calendar="noleap")
    config = parse_config(
        {
            "datasets": {
                DATASET: {
                    "timeseries": "gone/many_timeseries.zarr",
                    "attributes": "gone/many_attributes.zarr",
                    "t_range_train": ["1985-01-01", "2009-12-31"],
                    "t_range_valid": ["2010-01-01", "2011-12-31"],
                    "t_range_test": ["2012-01-01", "2019-12-31"],
                    "variables": {"relevant": list(INPUTS), "target": [TARGET], "constant": list(STATICS)},
                }
            }
        }
    )
    found = {
        "datasets": _rows(
            dataset_id=[DATASET], timeseries_uri=["gone"], attributes_uri=["gone"], num_basins=[basins],
            num_steps=[steps], time_start=["1980-01-01T00:00:00"], step_seconds=[86_400], calendar=["noleap"],
            weight=[1.0], fingerprint=[""],
        ),
        "segments": _rows(
            dataset_id=[DATASET], segment=[0], start=[0], stop=[steps], time_start=["1980-01-01T00:00:00"]
        ),
        "periods": _rows(
            dataset_id=[DATASET] * 3, split=list(SPLITS), start=[365 * 5, 365 * 30, 365 * 32],
            stop=[365 * 30, 365 * 32, steps], time_start=["1985-01-01", "2010-01-01", "2012-01-01"],
            time_last=["2009-12-31", "2011-12-31", "2019-12-31"],
        ),
        "basins": _rows(
            dataset_id=[DATASET] * basins, basin=np.arange(basins), basin_id=[f"{n:08d}" for n in range(basins)],
            store_row=np.arange(basins), splits=[",".join(SPLITS)] * basins,
        ),
        "variables": _variables(),
        "runs": _runs(basins, steps, holes, rng),
        "windows": _windows(basins, rng),
        "dropped": _dropped(basins),
        "stats": _stats(basins, rng),
        "statics": _statics(basins, rng),
        "chunks": _chunks(basins, steps, rng),
    }  # fmt: skip
    tables: dict[str, Iterable[pa.Table]] = {
        name: [_table(name, found[name])] if name in found else [] for name in TABLES
    }
    write_index(out, tables, views_sql({DATASET: axis}), config=config, parts=())
    return out


def _rows(**columns: Any) -> Mapping[str, Any]:
    return columns


def _table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    schema = TABLES[name].schema
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _variables() -> Mapping[str, Any]:
    roles = {**dict.fromkeys(INPUTS, "input"), TARGET: "target", **dict.fromkeys(STATICS, "static")}
    names, number = sorted(roles), len(roles)
    return _rows(
        dataset_id=[DATASET] * number, variable=names, role=[roles[n] for n in names], array=names,
        unit=["mm/day"] * number, scale=[1.0] * number, offset=[0.0] * number, storage_fill_value=["nan"] * number,
        model_fill_value=[0.0] * number, dtype=["float32"] * number, dims=["basin,time"] * number,
        chunk_shape=[f"{CHUNK_BASINS},{CHUNK_STEPS}"] * number, shard_shape=[""] * number, present=[True] * number,
        position=np.arange(number), missing_rule=["NaN"] * number, decode_digest=[""] * number,
        decode_rule=[rule_to_json(DecodeRule())] * number,
    )  # fmt: skip


def _runs(basins: int, steps: int, holes: int, rng: np.random.Generator) -> Mapping[str, Any]:
    names = sorted((*INPUTS, TARGET))
    cuts = np.sort(rng.integers(1, steps, size=(len(names) * basins, 2 * holes)), axis=1)
    edges = np.concatenate([np.zeros((len(cuts), 1), int), cuts, np.full((len(cuts), 1), steps)], axis=1)
    start, stop = edges[:, ::2].ravel(), edges[:, 1::2].ravel()
    kept = stop > start
    variable = np.repeat(names, basins * (holes + 1))
    basin = np.tile(np.repeat(np.arange(basins), holes + 1), len(names))
    return _rows(
        dataset_id=[DATASET] * int(kept.sum()), variable=variable[kept], basin=basin[kept], start=start[kept],
        stop=stop[kept],
    )  # fmt: skip


def _windows(basins: int, rng: np.random.Generator) -> Mapping[str, Any]:
    length = {"test": 365 * 8, "train": 365 * 25, "valid": 365 * 2}
    first = {"test": 365 * 31, "train": 365 * 4, "valid": 365 * 29}
    split = np.repeat(sorted(length), basins)
    number = np.array([length[s] for s in split]) - rng.integers(0, 300, len(split))
    start = np.array([first[s] for s in split])
    return _rows(
        dataset_id=[DATASET] * len(split), split=split, segment=np.zeros(len(split), int),
        basin=np.tile(np.arange(basins), 3), start=start, stop=start + number, num_windows=number,
    )  # fmt: skip


def _dropped(basins: int) -> Mapping[str, Any]:
    return _rows(
        dataset_id=[DATASET] * basins, split=["train"] * basins, basin=np.arange(basins),
        reason=["target_missing"] * basins, num_windows=np.full(basins, 150),
    )  # fmt: skip


def _stats(basins: int, rng: np.random.Generator) -> Mapping[str, Any]:
    names = sorted((*INPUTS, TARGET))
    variable = np.concatenate([np.repeat(names, basins), names, sorted(STATICS)])
    whole = len(names) + len(STATICS)
    number = len(variable)
    mean = rng.gamma(2.0, 2.0, number)
    return _rows(
        scope=["basin"] * (number - whole) + ["dataset"] * whole, dataset_id=[DATASET] * number,
        basin=np.concatenate([np.tile(np.arange(basins), len(names)), np.full(whole, -1)]), variable=variable,
        count=np.full(number, 9_000), mean=mean, std=mean / 3, min=np.zeros(number), max=mean * 10,
    )  # fmt: skip


def _statics(basins: int, rng: np.random.Generator) -> Mapping[str, Any]:
    ranges = {"area": (5.0, 5_000.0), "gauge_lat": (-40.0, 60.0), "gauge_lon": (-120.0, 150.0)}
    values = [rng.uniform(low, high, basins) for low, high in ranges.values()]
    return _rows(
        dataset_id=[DATASET] * (3 * basins), basin=np.tile(np.arange(basins), 3),
        variable=np.repeat(list(ranges), basins), value=np.concatenate(values),
    )  # fmt: skip


def _chunks(basins: int, steps: int, rng: np.random.Generator) -> Mapping[str, Any]:
    names = sorted((*INPUTS, TARGET))
    along_basin, along_time = -(-basins // CHUNK_BASINS), -(-steps // CHUNK_STEPS)
    basin = np.tile(np.repeat(np.arange(along_basin), along_time), len(names))
    time = np.tile(np.arange(along_time), along_basin * len(names))
    number = len(basin)
    return _rows(
        dataset_id=[DATASET] * number, variable=np.repeat(names, along_basin * along_time), basin_chunk=basin,
        time_chunk=time, basin_start=basin * CHUNK_BASINS, basin_stop=np.minimum((basin + 1) * CHUNK_BASINS, basins),
        time_start=time * CHUNK_STEPS, time_stop=np.minimum((time + 1) * CHUNK_STEPS, steps),
        state=np.where(rng.random(number) < 0.01, "absent", "data"), stored_nbytes=rng.integers(10_000, 70_000, number),
        valid_count=np.full(number, CHUNK_BASINS * CHUNK_STEPS), fingerprint=[""] * number,
    )  # fmt: skip
