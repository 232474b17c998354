"""The most memory that an epoch takes on each store, against what the loader promises.

The promise: RssAnon + RssShmem stay below the budget + 400 MB + readers × (decoded + stored bytes of the largest
chunk). Every store is served by a process of its own, from a cold start, with a budget of 1/8 of the decoded split; its
memory is looked at every 10 ms.
"""

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.compute as pc
from rows import append, machine
from stores import SHAPES, config_text, write_store

import headrace
from headrace.schemas.config_io import parse_config

_SPARE = 400 * 10**6
_READERS = 2


def main() -> None:
    """Serve each store in turn and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default=",".join(SHAPES), help="a,b; default: every one")
    parser.add_argument("--work-dir", type=Path, required=True, help="takes stores and indexes")
    parser.add_argument("--batches", type=int, default=6000, help="batches of 512 windows of 365 steps to serve")
    parser.add_argument(
        "--serve", action="store_true", help="serve one store in this process, and print one JSON object"
    )
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    if args.serve:
        print(json.dumps(serve(args.store, args.work_dir, args.batches)))
        return
    print(f"{'store':20} {'budget, MB':>11} {'peak, MB':>9} {'promise, MB':>12}")
    rows: list[dict[str, object]] = []
    for name in args.store.split(","):
        shape, folder = SHAPES[name], args.work_dir
        folder.mkdir(parents=True, exist_ok=True)
        headrace.build_index(parse_config(config_text(shape, write_store(shape, folder))), folder / f"{name}.index")
        command = [sys.executable, __file__, "--serve", "--store", name, "--work-dir", str(folder)]
        command += ["--batches", str(args.batches)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{name:20} {found['budget'] / 1e6:11,.0f} {found['peak'] / 1e6:9,.0f} {found['promise'] / 1e6:12,.0f}")
        rows.append({"benchmark": "memory_bound", "store": name, "batches": args.batches} | found | machine())
    append(args.json, rows)


def serve(name: str, folder: Path, batches: int) -> dict[str, int]:
    """Serve one store; return budget, peak and promise in bytes."""
    shape, peak = SHAPES[name], [0]

    def look() -> None:
        while True:
            status = Path("/proc/self/status").read_text(encoding="ascii")
            found = re.findall(r"(?:RssAnon|RssShmem):\s+(\d+) kB", status)
            peak[0] = max(peak[0], 1024 * sum(map(int, found)))
            time.sleep(0.01)

    threading.Thread(target=look, daemon=True).start()
    budget = shape.basins * shape.steps * shape.variables * 4 // 8
    with headrace.open_index(folder / f"{name}.index") as index:
        stored = pc.max(index.sql("SELECT max(stored_nbytes) AS nbytes FROM chunks")["nbytes"]).as_py()
        loader = headrace.WindowLoader(
            index,
            "train",
            batch_size=512,
            window={"hindcast_length": 364, "forecast_length": 1, "warmup_length": 364},
            memory_budget=budget,
            num_workers=_READERS,
        )
        with loader:
            for number, _ in enumerate(loader, 1):
                if number == batches:
                    break
    decoded = shape.chunks[0] * shape.chunks[1] * int(shape.dtype[1:])
    # An object of a sharded store holds many chunks, and no chunk is stored larger than it is decoded.
    largest = decoded + min(stored, decoded)
    return {"budget": budget, "peak": peak[0], "promise": budget + _SPARE + _READERS * largest}


if __name__ == "__main__":
    main()
