"""How long a training loop waits for data from S3 when every request takes 30 ms longer.

A proxy before the server adds the latency. The model step is a sleep, as work on a GPU is to the processor. Waits count
from the first batch that is served by the second round; the first round has nothing to hide behind. With a budget below
the split each round is read while the one before it is served; else the first epoch serves rounds as they arrive.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from loopback import BUCKET, late_proxy, s3_server
from rows import append, machine
from s3_rate import STORES, s3_config
from stores import StoreShape, write_store

import headrace


def main() -> None:
    """Measure one store under some budgets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=list(STORES), default="daily_600_small")
    parser.add_argument("--latency", type=float, default=0.03, help="seconds that every request takes longer")
    parser.add_argument("--step", type=float, default=0.05, help="seconds of work on a batch")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--work-dir", type=Path, help="where stores and indexes lie (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="append result rows to this file")
    args = parser.parse_args()
    shape = STORES[args.store]
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.work_dir or Path(temporary)
        (folder / BUCKET).mkdir(parents=True, exist_ok=True)
        store = write_store(shape, folder / BUCKET)
        with s3_server(folder) as server, late_proxy(server, args.latency) as url:
            windows = args.batches * args.batch_size
            stride = max(1, shape.basins * (shape.steps - 364) // windows)
            config = s3_config(shape, f"s3://{BUCKET}/{store.name}", url, stride)
            out = folder / f"{shape.name}.late.index"
            headrace.build_index(config, out)
            append(args.json, [measure(shape, out, args, part) for part in (None, 4)])


def measure(shape: StoreShape, out: Path, args: argparse.Namespace, part: int | None) -> dict[str, object]:
    """Serve an epoch with a step for each batch; return the row."""
    decoded = shape.basins * shape.steps * shape.variables * 4
    budget = 2 * decoded if part is None else decoded // part
    waits = []
    with (
        headrace.open_index(out) as index,
        headrace.WindowLoader(index, "train", batch_size=args.batch_size, memory_budget=budget) as loader,
    ):
        plan = loader.plan()
        first = -(-int(plan.window_cuts[1]) // args.batch_size)
        batches = iter(loader)
        for _ in range(len(loader)):
            asked = time.perf_counter()
            next(batches)
            waits.append(time.perf_counter() - asked)
            time.sleep(args.step)
        chunks = loader.chunks_read
    later = waits[first:]
    share = sum(later) / (len(later) * args.step)
    held = "the whole split" if part is None else f"1/{part} of the split"
    print(
        f"{shape.name}, {chunks} chunks, {args.latency * 1e3:.0f} ms latency, budget {held}, {plan.num_rounds} rounds: "
        f"first round waits {sum(waits[:first]):.2f} s; after it {share:.1%} of a {args.step * 1e3:.0f} ms step "
        f"(longest {max(later):.3f} s, median {statistics.median(later) * 1e3:.2f} ms), load {os.getloadavg()[0]:.1f}"
    )
    return {
        "benchmark": "s3_latency",
        "store": shape.name,
        "latency_seconds": args.latency,
        "step_seconds": args.step,
        "batch_size": args.batch_size,
        "memory_budget_share": None if part is None else 1 / part,
        "rounds": plan.num_rounds,
        "batches": len(waits),
        "batches_of_first_round": first,
        "chunks_read": chunks,
        "first_round_wait_seconds": sum(waits[:first]),
        "wait_share_of_step": share,
        "longest_wait_seconds": max(later),
    } | machine()


if __name__ == "__main__":
    main()
