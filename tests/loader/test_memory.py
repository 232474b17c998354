"""Peak memory while an epoch is served whose chunk columns, and whose rows, are many times the memory budget."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from build_here import build_here

BASINS, STEPS = 32, 400_000
BUDGET, READERS = 16 * 2**20, 2

SCRIPT = """
import json, sys, threading, time
import headrace

def held():
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    return sum(int(status[name].split()[0]) for name in ("RssAnon", "RssShmem")) * 1024

peak, done = [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], held())

with headrace.open_index(sys.argv[1]) as index:
    settings = dict(memory_budget=int(sys.argv[4]), num_workers=int(sys.argv[5]), cache_dir=sys.argv[2])
    settings["batch_size"] = 4096
    settings["sampling"] = {"max_batches_per_epoch": json.loads(sys.argv[3])}
    with headrace.WindowLoader(index, "train", **settings) as loader:
        before = held()
        threading.Thread(target=watch).start()
        served = sum(float(batch.x[:, 0, 0].sum()) for batch in loader)
        done.set()
        rows = loader.serving.shape.layout.num_rows
        print(json.dumps(dict(before=before, peak=peak[0], rows=rows, read=loader.read_amplification, served=served)))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three inputs in all layouts, of which a column of chunks is 50 MB; 200 MB decoded."""
    folder = tmp_path_factory.mktemp("large")
    group = zarr.open_group(folder / "s.zarr", mode="w", zarr_format=3)
    layouts = {
        "plain": (("basin", "time"), (BASINS, 20_000), None),
        "turned": (("time", "basin"), (20_000, BASINS), None),
        "sharded": (("time", "basin"), (5_000, 8), (40_000, BASINS)),
        "flow": (("basin", "time"), (BASINS, 20_000), None),
    }
    for number, (name, (dims, chunks, shards)) in enumerate(layouts.items()):
        shape = tuple({"basin": BASINS, "time": STEPS}[d] for d in dims)
        group.create_array(
            name, data=np.full(shape, 1.0 + number, np.float32), chunks=chunks, shards=shards, dimension_names=dims
        )
    group.create_array("time", data=np.arange(STEPS), dimension_names=("time",)).attrs["units"] = (
        "hours since 1970-01-01"
    )
    group.create_array("basin", data=np.arange(BASINS).astype("S4"), dimension_names=("basin",))
    data = {
        "datasets": {
            "a": {
                "timeseries": str(folder / "s.zarr"),
                "t_range_train": ["1970-01-01", "2100-01-01"],
                "variables": {"relevant": ["plain", "turned", "sharded"], "target": ["flow"]},
            }
        },
        "window": {"hindcast_length": 24, "forecast_length": 1, "stride": 24},
        "normalization": {"method": "none"},
    }
    return build_here(data, folder / "index")


@pytest.mark.parametrize("spilled", [True, False])
def test_memory_stays_within_budget_and_what_readers_hold(large, tmp_path, spilled):
    """E9, C5: also for (time, basin) and sharded arrays, and where chunks are read again in every round."""
    asked = [str(tmp_path), "null"] if spilled else ["off", "8"]
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(large), *asked, str(BUDGET), str(READERS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    decoded, chunk = 4 * 4 * found["rows"], 4 * BASINS * 40_000
    assert decoded > 190e6
    assert found["peak"] <= BUDGET + 400e6 + READERS * 2 * chunk
    assert found["peak"] - found["before"] < 0.9 * decoded
    assert (found["read"] == 1) == spilled
