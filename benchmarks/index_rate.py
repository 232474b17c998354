"""Building an index against decoding every chunk once with the same number of threads.

Decoding: every chunk column is read through zarr in a thread pool and thrown away. The sides alternate; start-up of
the cluster is shown apart by building an index again over unchanged stores, which reads no chunk.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import zarr
from rows import append, machine
from stores import SHAPES, StoreShape, config_text, write_store

import headrace
from headrace.schemas.config_io import parse_config


def main() -> None:
    """Run the sides in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=list(SHAPES), default="daily_671")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work-dir", type=Path, help="where stores and indexes lie (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        append(args.json, measure(SHAPES[args.store], args.repeats, args.work_dir or Path(temporary)))


def measure(shape: StoreShape, repeats: int, folder: Path) -> list[dict[str, object]]:
    """Return one row with seconds of each side."""
    folder.mkdir(parents=True, exist_ok=True)
    store, out = write_store(shape, folder), folder / f"{shape.name}.index"
    config = parse_config(config_text(shape, store))
    sides: dict[str, list[float]] = {"decode": [], "build": [], "build again, nothing changed": []}
    for _ in range(repeats):
        sides["decode"].append(seconds(lambda: decode(shape, store)))
        shutil.rmtree(out, ignore_errors=True)
        sides["build"].append(seconds(lambda: headrace.build_index(config, out)))
        sides["build again, nothing changed"].append(seconds(lambda: headrace.build_index(config, out)))
    medians = {name: statistics.median(values) for name, values in sides.items()}
    decoded = shape.basins * shape.steps * shape.variables * int(shape.dtype[1:])
    print(f"{shape.name}: {decoded / 1e9:.2f} GB decoded, {os.cpu_count()} threads, load {os.getloadavg()[0]:.1f}")
    for name, value in medians.items():
        print(f"{name:30} {value:7.2f} s {decoded / value / 1e9:7.2f} GB/s {value / medians['decode']:7.2f} x decode")
    settings = {"benchmark": "index_rate", "store": shape.name, "decoded_nbytes": decoded, "seconds": sides}
    ratio = (medians["build"] - medians["build again, nothing changed"]) / medians["decode"]
    print(f"scan alone (build less start-up): {ratio:.2f} x decode")
    return [settings | {"ratio_build": medians["build"] / medians["decode"], "ratio_scan": ratio} | machine()]


def seconds(work: object) -> float:
    """Return how long a call takes."""
    assert callable(work)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def decode(shape: StoreShape, store: Path) -> None:
    """Read every chunk once, a time chunk of one array per call, as many at a time as there are processors."""
    group = zarr.open_group(store, mode="r")
    calls = [
        (name, slice(b, b + shape.chunks[0]), slice(t, t + shape.chunks[1]))
        for name in shape.names
        for b in range(0, shape.basins, shape.chunks[0])
        for t in range(0, shape.steps, shape.chunks[1])
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(lambda call: group[call[0]][call[1], call[2]], calls):
            pass


if __name__ == "__main__":
    main()
