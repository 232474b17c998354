"""An index build and a first epoch from S3 against fetching the same objects with bare obstore and decoding them.

Bare: threads that each get an object, decode it with its codec and throw it away; how many of them is the best of a
sweep, and the sides alternate after it. The server is rclone on loopback and shares the processors with all of them. An
epoch serves windows of a year, one a year (`--stride`), so that it is about reading, not about gathering. Processor
seconds, without the server's, are told beside the seconds. What is loaded before the first measurement is left out of
garbage collections on all sides, as the commands do.
"""

import argparse
import gc
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numcodecs
import obstore
from loopback import BUCKET, KEY, SECRET, s3_server
from obstore.store import S3Store
from rows import append, machine
from stores import SHAPES, StoreShape, config_text, write_store

import headrace
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config

SWEEP = (2, 4, 8, 16, 32)
SMALL = replace(SHAPES["daily_2000"], name="daily_600_small", basins=600, chunks=(60, 365))
LARGER = replace(SMALL, name="daily_1800_small", basins=1800)
WHOLE = SHAPES["daily_671"]
MORE_WHOLE = replace(WHOLE, name="daily_2013", basins=2013)
STORES = {shape.name: shape for shape in (WHOLE, MORE_WHOLE, SMALL, LARGER)}
"""Chunks of 20 MB and of 175 KB, decoded; random values with two decimals hardly compress."""


def main() -> None:
    """Measure one store and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=list(STORES), default="daily_671")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--stride", type=int, default=365, help="steps between the windows of the epoch")
    parser.add_argument("--work-dir", type=Path, help="where stores and indexes lie (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    shape = STORES[args.store]
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.work_dir or Path(temporary)
        (folder / BUCKET).mkdir(parents=True, exist_ok=True)
        store = write_store(shape, folder / BUCKET)
        with s3_server(folder) as url:
            append(args.json, [measure(shape, store, url, folder / f"{shape.name}.s3index", args)])


def measure(shape: StoreShape, store: Path, url: str, out: Path, args: argparse.Namespace) -> dict[str, object]:
    """Run the sides in turn and return the row."""
    keys = [
        f"{store.name}/{name}/{b}.{t}"
        for name in shape.names
        for b in range(-(-shape.basins // shape.chunks[0]))
        for t in range(-(-shape.steps // shape.chunks[1]))
    ]
    config = s3_config(shape, f"s3://{BUCKET}/{store.name}", url, args.stride)
    codec = numcodecs.get_codec(json.loads((store / shape.names[0] / ".zarray").read_text())["compressor"])
    bare = S3Store(
        BUCKET, endpoint=url, region="us-east-1", access_key_id=KEY, secret_access_key=SECRET,
        virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip

    def fetch(threads: int) -> None:
        def one(key: str) -> None:
            codec.decode(obstore.get(bare, key).bytes())

        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(one, keys):
                pass

    headrace.build_index(config, out, fresh=True)  # libraries and compiled code are loaded
    epoch(out)
    gc.collect()
    gc.freeze()
    swept = {threads: timed(lambda n=threads: fetch(n))[0] for threads in SWEEP}
    best = min(swept, key=swept.__getitem__)
    sides: dict[str, Callable[[], object]] = {
        "bare obstore and decoding": lambda: fetch(best),
        "index build": lambda: headrace.build_index(config, out),
        "first epoch": lambda: epoch(out),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(args.repeats):
        for name, side in sides.items():
            if name == "index build":
                shutil.rmtree(out)
            times[name].append(timed(side))
    stored = sum((store / key.partition("/")[2]).stat().st_size for key in keys)
    facts = {"objects": len(keys), "stored_nbytes": stored, "stride": args.stride, "sweep_seconds": swept}
    return report(shape, times, facts)


def s3_config(shape: StoreShape, uri: str, url: str, stride: int) -> Config:
    """Return the configuration that indexes the store at a URL and serves windows of a year."""
    text = config_text(shape, Path("replaced"))
    text["datasets"][shape.name]["timeseries"] = uri
    window = {"hindcast_length": 364, "forecast_length": 1, "warmup_length": 364, "stride": stride}
    return parse_config(text | {"window": window, "storage": {"endpoint_url": url, "addressing_style": "path"}})


def timed(side: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of a call, and those that this process computed meanwhile."""
    start, busy = time.perf_counter(), time.process_time()
    side()
    return time.perf_counter() - start, time.process_time() - busy


def epoch(out: Path) -> None:
    """Serve a first epoch, from opening the index to the last batch."""
    with headrace.open_index(out) as index, headrace.WindowLoader(index, "train", batch_size=512) as loader:
        for _ in loader:
            pass
        assert loader.chunks_read > 0


def report(shape: StoreShape, times: dict[str, list[tuple[float, float]]], facts: dict[str, Any]) -> dict[str, object]:
    """Print the table and return the row."""
    decoded = shape.basins * shape.steps * shape.variables * int(shape.dtype[1:])
    seconds = {name: [wall for wall, _ in values] for name, values in times.items()}
    busy = {name: [cpu for _, cpu in values] for name, values in times.items()}
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    bare = medians["bare obstore and decoding"]
    print(
        f"{shape.name}: {facts['objects']} objects, {facts['stored_nbytes'] / 1e9:.2f} GB stored, "
        f"{decoded / 1e9:.2f} GB decoded, a window every {facts['stride']} steps, load {os.getloadavg()[0]:.1f}"
    )
    print("seconds by number of bare threads: " + ", ".join(f"{n}: {s:.2f}" for n, s in facts["sweep_seconds"].items()))
    for name, values in seconds.items():
        print(
            f"{name:28} {medians[name]:7.2f} s {decoded / medians[name] / 1e9:6.2f} GB/s "
            f"{bare / medians[name]:6.2f} of bare   {min(values):.2f} to {max(values):.2f} s, "
            f"{min(busy[name]):.2f} processor seconds"
        )
    return {
        "benchmark": "s3_rate",
        "store": shape.name,
        "decoded_nbytes": decoded,
        "seconds": seconds,
        "processor_seconds": busy,
        "ratio_build": bare / medians["index build"],
        "ratio_first_epoch": bare / medians["first epoch"],
        **facts,
        **machine(),
    }


if __name__ == "__main__":
    main()
