"""What mixing costs: shuffle quality, bytes read and memory of a whole first epoch, for several memory budgets.

Each budget is a process of its own that serves one epoch; quality is that of the first epoch and of the second.
Windows lie ``--stride`` steps apart, so that an epoch reads everything but serves in seconds.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from rows import append, machine
from stores import SHAPES, StoreShape, config_text, write_store

import headrace
from headrace.loader.shuffle_quality import measure_quality
from headrace.schemas.config_io import parse_config

_SHARES = (0.0625, 0.125, 0.25, 0.5, 2.0)
_MEASURES = ("distinct_basins_ratio", "distinct_time_chunks_ratio", "distinct_months_ratio", "worst_tenth_ratio")


def main() -> None:
    """Measure every store and budget, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", action="append", choices=list(SHAPES), help="default: daily_671 and daily_2000")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--length", type=int, default=365, help="input steps of a window")
    parser.add_argument("--stride", type=int, default=16, help="steps between windows")
    parser.add_argument("--work-dir", type=Path, help="where stores and indexes lie (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    parser.add_argument("--one", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(one_budget(SHAPES[args.store[0]], args, args.work_dir)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        for name in args.store or ["daily_671", "daily_2000"]:
            append(args.json, table(SHAPES[name], args, args.work_dir or Path(temporary)))


def table(shape: StoreShape, args: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    """Print one line per budget and epoch and return the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    headrace.build_index(parse_config(config_text(shape, write_store(shape, folder))), folder / f"{shape.name}.index")
    print(f"{shape.name}, batch {args.batch_size}, length {args.length}, stride {args.stride}")
    print(f"{'budget':>8} {'epoch':>5} {'rounds':>6} {'basins':>7} {'chunks':>7} {'months':>7} {'tenth':>7}", end="")
    print(f" {'read MiB':>9} {'spill MiB':>9} {'peak RSS MiB':>12}")
    rows: list[dict[str, object]] = []
    for share in _SHARES:
        command = [sys.executable, __file__, "--one", str(share), "--store", shape.name, "--work-dir", str(folder)]
        for name in ("batch_size", "length", "stride"):
            command += [f"--{name.replace('_', '-')}", str(getattr(args, name))]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for quality in found.pop("quality"):
            ratios = " ".join(f"{quality[name]:7.3f}" for name in _MEASURES)
            mib = [found[name] / 2**20 for name in ("bytes_read", "spill_bytes", "peak_rss_bytes")]
            print(
                f"{share:8.4f} {quality['epoch']:5} {quality['rounds']:6} {ratios} {mib[0]:9.0f} {mib[1]:9.0f}", end=""
            )
            print(f" {mib[2]:12.0f}")
            rows.append({"benchmark": "shuffle_tradeoff", "store": shape.name} | found | quality | machine())
    return rows


def one_budget(shape: StoreShape, args: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Serve one epoch with a share of the decoded split as budget; return what it took."""
    decoded = shape.basins * shape.steps * shape.variables * 4
    window = {
        "hindcast_length": args.length - 1, "forecast_length": 1, "warmup_length": args.length - 1,
        "stride": args.stride,
    }  # fmt: skip
    with (
        headrace.open_index(folder / f"{shape.name}.index") as index,
        headrace.WindowLoader(
            index, "train", batch_size=args.batch_size, window=window, memory_budget=int(decoded * args.one)
        ) as loader,
    ):
        quality = [measure_quality(loader).as_dict()]
        served = sum(len(batch) for batch in loader)
        assert served == loader.num_windows
        quality.append(measure_quality(loader).as_dict())
        return {
            "budget_share": args.one, "stride": args.stride, "length": args.length, "windows": served,
            "bytes_read": loader.bytes_read, "chunks_read": loader.chunks_read, "spill_bytes": loader.spill_nbytes,
            "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "quality": quality,
        }  # fmt: skip


if __name__ == "__main__":
    main()
