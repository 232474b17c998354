"""One rank of a real process group on loopback, for tests: serve an epoch and print what came."""

import json
import os
import sys
from typing import Any

import torch

import headrace
from headrace.schemas.errors import ConfigError


def main(index_folder: str, settings_by_rank: list[dict[str, Any]]) -> None:
    """Write the windows of two epochs of this rank, after the error that other seeds on every rank raise."""
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    out: dict[str, Any] = {"rank": rank}
    with headrace.open_index(index_folder) as index:
        try:
            headrace.WindowLoader(index, "train", seed=rank)
        except ConfigError as error:
            out["error"] = str(error).splitlines()[0]
        with headrace.WindowLoader(index, "train", batch_size=32, num_workers=1, **settings_by_rank[rank]) as loader:
            out["round_steps"] = loader.state_dict()["round_steps"]
            out["epochs"] = [
                [list(zip(*(c.tolist() for c in (b.dataset, b.basin, b.start)), strict=True)) for b in loader]
                for _ in range(2)
            ]
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    with open(f"{os.environ['HEADRACE_TEST_OUT']}/{rank}.json", "w", encoding="utf-8") as file:
        json.dump(out, file)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
