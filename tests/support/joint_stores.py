"""Two small data sets that differ in everything a store may differ in, their configuration and their index."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from build_here import build_here
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config
from synthetic import ArrayLayout, SyntheticStore, write_attributes, write_store


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Stores on disk, what they hold, and an index of them."""

    folder: Path
    stores: dict[str, SyntheticStore]
    config: Config
    index: Path


def write_joint(folder: Path, **sections: Any) -> Joint:
    """Write the stores ``river`` (format 3, two segments) and ``creek`` (format 2), and index them in this thread."""
    rng = np.random.default_rng(4)
    river = write_store(
        folder / "river.zarr",
        basins=5,
        steps=120,
        zarr_format=3,
        variables={
            "rain": ArrayLayout(chunks=(2, 50)),
            "warmth": ArrayLayout(dims=("time", "basin"), chunks=(30, 2), shards=(60, 4)),
            "flow": ArrayLayout(dims=("time", "basin"), chunks=(40, 3), missing_as=-999.0),
        },
        missing={"rain": rng.random((5, 120)) < 0.03, "flow": rng.random((5, 120)) < 0.1},
        gaps={70: 3},
        dataset=0,
    )
    creek = write_store(
        folder / "creek.zarr",
        basins=[f"c{n}" for n in range(3)],
        steps=90,
        variables={"rain": ArrayLayout(chunks=(1, 90)), "flow": ArrayLayout(chunks=(3, 20))},
        missing={"flow": lambda basins, steps: np.arange(basins * steps).reshape(basins, steps) % 31 == 5},
        dataset=1,
    )
    stores = {"river": river, "creek": creek}
    for name, store in stores.items():
        areas = np.arange(1.0, 1.0 + len(store.basin_ids))
        write_attributes(folder / f"{name}_attributes.zarr", store.basin_ids, {"area": areas}, {"area": "km2"})
    data: dict[str, Any] = {
        "datasets": {
            name: {
                "timeseries": str(store.path),
                "attributes": str(folder / f"{name}_attributes.zarr"),
                "t_range_train": [str(store.times[0])[:10], str(store.times[69])[:10]],
                "t_range_test": [str(store.times[70])[:10], str(store.times[-1])[:10]],
                "variables": {
                    "relevant": {"rain": "rain", "warmth": {"physical": "warmth", "required": False}},
                    "target": ["flow"],
                    "constant": ["area"],
                },
            }
            for name, store in stores.items()
        },
        "window": {"hindcast_length": 6, "forecast_length": 1, "warmup_length": 5},
        "normalization": {"method": "none"},
        **sections,
    }
    config = parse_config(data)
    return Joint(folder=folder, stores=stores, config=config, index=build_here(config, folder / "index"))
