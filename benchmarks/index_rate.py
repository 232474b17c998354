"""Building an index against decoding every chunk once with the same number of threads.

Decoding: every chunk column is read through zarr in a thread pool and thrown away. Sides alternate in one process.
Start-up is told by a tiny store of the same arrays: built here, it is what a build takes besides the data (cluster,
small tables); built in a new process, it adds imports and the loading of compiled code. Peak memory is that of a new
process that builds the whole store. ``--scale`` repeats all of it with more basins.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import one_build
import zarr
from rows import append, machine
from stores import SHAPES, StoreShape, config_text, write_store

import headrace
from headrace.schemas.config_io import parse_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one store took.

    Parameters
    ----------
    shape
        The store.
    nbytes
        Its decoded bytes.
    seconds
        Side to its seconds, one per repeat.
    fresh
        Seconds of ``import`` and ``build`` in a new process for the tiny store.
    peak_nbytes
        Largest resident memory of a new process that builds the store.
    """

    shape: StoreShape
    nbytes: int
    seconds: dict[str, list[float]]
    fresh: dict[str, float]
    peak_nbytes: int

    def median(self, side: str) -> float:
        """Return the median seconds of a side."""
        return statistics.median(self.seconds[side])

    @property
    def ratio(self) -> float:
        """A build, start-up included, over decoding."""
        return self.median("build") / self.median("decode")

    @property
    def ratio_scan(self) -> float:
        """A build less that of a tiny store, over decoding."""
        return (self.median("build") - self.median("tiny build")) / self.median("decode")


def main() -> None:
    """Measure a store at each scale and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=list(SHAPES), default="daily_671")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", default="1", help="factors of the number of basins, such as 1,3,10 (default: 1)")
    parser.add_argument("--work-dir", type=Path, help="where stores and indexes lie (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.work_dir or Path(temporary)
        found = [measure(scaled(SHAPES[args.store], int(k)), args.repeats, folder) for k in args.scale.split(",")]
    if len(found) > 1:
        show_scaling(found)
    append(args.json, [as_row(m) for m in found])


def scaled(shape: StoreShape, factor: int) -> StoreShape:
    """Return the store with so many times the basins, in chunks of the same shape."""
    return shape if factor == 1 else replace(shape, name=f"{shape.name}_x{factor}", basins=factor * shape.basins)


def measure(shape: StoreShape, repeats: int, folder: Path) -> Measured:
    """Run the sides in turn, then new processes, and print what was found."""
    folder.mkdir(parents=True, exist_ok=True)
    store, out = write_store(shape, folder), folder / f"{shape.name}.index"
    tiny = replace(shape, name=f"{shape.name}_tiny", basins=8, steps=400, chunks=(8, 400), shards=None)
    tiny_store, tiny_out = write_store(tiny, folder), folder / f"{tiny.name}.index"
    config, tiny_config = parse_config(config_text(shape, store)), parse_config(config_text(tiny, tiny_store))
    sides: dict[str, Callable[[], object]] = {
        "decode": lambda: decode(shape, store),
        "build": lambda: headrace.build_index(config, emptied(out)),
        "build again, nothing changed": lambda: headrace.build_index(config, out),
        "tiny build": lambda: headrace.build_index(tiny_config, emptied(tiny_out)),
    }
    sides["tiny build"]()  # libraries and compiled code are loaded
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - start)
    fresh = in_new_process(tiny, tiny_store, emptied(tiny_out))
    peak = int(in_new_process(shape, store, emptied(out))["peak_nbytes"])
    decoded = shape.basins * shape.steps * shape.variables * int(shape.dtype[1:])
    found = Measured(shape=shape, nbytes=decoded, seconds=seconds, fresh=fresh, peak_nbytes=peak)
    show(found)
    return found


def emptied(out: Path) -> Path:
    """Remove an index."""
    shutil.rmtree(out, ignore_errors=True)
    return out


def in_new_process(shape: StoreShape, store: Path, out: Path) -> dict[str, float]:
    """Build an index in a new process; return its seconds and its peak memory."""
    settings = out.with_suffix(".yaml")
    settings.write_text(json.dumps(config_text(shape, store)))  # JSON is YAML
    command = [sys.executable, one_build.__file__, str(settings), str(out)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(found.stdout))


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


def show(m: Measured) -> None:
    """Print one store."""
    print(f"\n{m.shape.name}: {m.nbytes / 1e9:.2f} GB decoded, {os.cpu_count()} threads, load {os.getloadavg()[0]:.1f}")
    for name in m.seconds:
        value = m.median(name)
        rate = "" if name.startswith("tiny") else f"{m.nbytes / value / 1e9:7.2f} GB/s"
        print(f"{name:30} {value:7.2f} s {value / m.median('decode'):7.2f} x decode {rate}")
    print(
        f"{'build less tiny build':30} {m.median('build') - m.median('tiny build'):7.2f} s {m.ratio_scan:7.2f} x decode"
    )
    start = m.fresh["import"] + m.fresh["build"]
    split = f"imports {m.fresh['import']:.2f} s, tiny build with code to load {m.fresh['build']:.2f} s"
    print(f"{'start-up of a new process':30} {start:7.2f} s: {split}")
    print(f"{'peak memory of a new process':30} {m.peak_nbytes / 1e9:7.2f} GB")


def show_scaling(found: list[Measured]) -> None:
    """Print how seconds, ratio and memory grow with the number of basins."""
    print(f"\n{'basins':>8} {'GB':>7} {'decode s':>9} {'build s':>9} {'ratio':>7} {'less start-up':>14} {'peak GB':>8}")
    for m in found:
        print(
            f"{m.shape.basins:8,} {m.nbytes / 1e9:7.2f} {m.median('decode'):9.2f} {m.median('build'):9.2f} "
            f"{m.ratio:7.2f} {m.ratio_scan:14.2f} {m.peak_nbytes / 1e9:8.2f}"
        )


def as_row(m: Measured) -> dict[str, object]:
    """Return a row of results."""
    return {
        "benchmark": "index_rate",
        "store": m.shape.name,
        "basins": m.shape.basins,
        "decoded_nbytes": m.nbytes,
        "seconds": m.seconds,
        "new_process_seconds": {name: m.fresh[name] for name in ("import", "build")},
        "peak_nbytes": m.peak_nbytes,
        "ratio_build": m.ratio,
        "ratio_scan": m.ratio_scan,
    } | machine()


if __name__ == "__main__":
    main()
