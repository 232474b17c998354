"""Headrace, an epoch from its start: tables, reading and decoding included. With ``epoch: 1`` the one after it."""

from rivals.job import Clock, Job, Row, run, serve

import headrace


def side(job: Job) -> Row:
    """Serve one epoch."""
    settings, warmup = job["settings"], job["length"] - 1
    clock = Clock()
    with (
        headrace.open_index(job["index"]) as index,
        headrace.WindowLoader(
            index,
            "train",
            batch_size=job["batch_size"],
            window={"hindcast_length": warmup, "forecast_length": 1, "warmup_length": warmup},
            memory_budget=settings["memory_budget"],
        ) as loader,
    ):
        for _ in range(settings["epoch"]):
            for _ in loader:
                pass
        row = serve(loader, len, job["seconds"], clock)
        return row | {"chunks_read": loader.chunks_read, "spill_bytes": loader.spill_nbytes}


if __name__ == "__main__":
    run(side)
