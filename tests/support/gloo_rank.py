"""One rank of a real process group on loopback, for tests: serve an epoch and print what came."""

import json
import os
import sys
from typing import Any

import torch

import headrace
from headrace.schemas.errors import ConfigError


def main(index_folder: str, settings_by_rank: list[dict[str, Any]]) -> None:
    """Print the windows of two epochs of this rank as JSON, or the first line of the error that was raised."""
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    out: dict[str, Any] = {"rank": rank}
    try:
        with (
            headrace.open_index(index_folder) as index,
            headrace.WindowLoader(index, "train", batch_size=32, num_workers=1, **settings_by_rank[rank]) as loader,
        ):
            out["round_steps"] = loader.state_dict()["round_steps"]
            out["epochs"] = [
                [list(zip(*(c.tolist() for c in (b.dataset, b.basin, b.start)), strict=True)) for b in loader]
                for _ in range(2)
            ]
    except ConfigError as error:
        out["error"] = str(error).splitlines()[0]
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    with open(f"{os.environ['HEADRACE_TEST_OUT']}/{rank}.json", "w", encoding="utf-8") as file:
        json.dump(out, file)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
