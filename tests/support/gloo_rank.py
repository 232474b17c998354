"""The processes of real process groups on loopback, for tests: make loaders, serve epochs, write down what came.

Ranks are forks of one process that has imported everything and started nothing.
"""

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

import headrace
from forked import forked
from headrace.schemas.errors import HeadraceError


def serve(case: dict[str, Any], rank: int) -> dict[str, Any]:
    """Return what this rank got of a case: batches of every epoch, or the error.

    A case holds ``index``, ``settings`` and ``epochs``; ``index_of`` and ``settings_of`` say by rank what differs.
    """
    folder = case.get("index_of", {}).get(str(rank), case["index"])
    settings = {**case["settings"], **case.get("settings_of", {}).get(str(rank), {})}
    try:
        with (
            headrace.open_index(folder) as index,
            headrace.WindowLoader(index, "train", num_workers=1, **settings) as loader,
        ):
            epochs = [
                [list(zip(*(c.tolist() for c in (b.dataset, b.basin, b.start)), strict=True)) for b in loader]
                for _ in range(case["epochs"])
            ]
            return {"epochs": epochs, "length": len(loader), "state": loader.state_dict()}
    except HeadraceError as error:
        return {"kind": type(error).__name__, "error": str(error).splitlines()[0]}


def main(rank: int, groups: list[dict[str, Any]], out: Path) -> None:
    """Take part in every group that is large enough, and write the answers to all cases."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for group in groups:
        size = int(group["size"])
        if rank < size:
            torch.distributed.init_process_group(
                "gloo", init_method=f"tcp://127.0.0.1:{group['port']}", rank=rank, world_size=size,
                timeout=timedelta(seconds=60),
            )  # fmt: skip
            found |= {name: serve(case, rank) for name, case in group["cases"].items()}
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()
    out.write_text(json.dumps(found), encoding="utf-8")


def fork_rank(rank: int, groups: list[dict[str, Any]], out: Path) -> int:
    """Start a rank; return its process id."""
    return forked(lambda: main(rank, groups, out))


if __name__ == "__main__":
    cases = json.loads(sys.argv[1])
    ranks = range(max(group["size"] for group in cases))
    processes = [fork_rank(rank, cases, Path(sys.argv[2]) / f"{rank}.json") for rank in ranks]
    ended = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    sys.exit(f"ranks ended with {ended}" if any(ended) else 0)
