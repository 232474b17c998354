"""The bound: ``torch.index_select`` of random windows from a pool in memory into a buffer that is used again."""

import threading
import time

import numpy as np
import torch
from rivals.job import Clock, Job, Row, run

_STRETCH = 1_000_000
"""Rows drawn beforehand; they are gone through again and again."""


def side(job: Job) -> Row:
    """Gather on one or more threads until time is up."""
    clock = Clock()
    width, length, batch_size = len(job["names"]) - 1, job["length"], job["batch_size"]
    # Filled, because untouched pages would all be the same page of zeros and stay in the cache.
    pool = torch.rand(job["basins"] * job["steps"], width)
    view = pool.as_strided((pool.shape[0] - length + 1, length * width), (width, 1))
    rows = torch.from_numpy(np.random.default_rng(0).integers(0, view.shape[0], _STRETCH // batch_size * batch_size))
    served = [0] * job["settings"]["threads"]
    setup, start = clock.seconds(), time.perf_counter()

    def work(number: int) -> None:
        torch.set_num_threads(1)
        out = torch.empty(batch_size, length * width)
        first = 0
        while True:
            torch.index_select(view, 0, rows[first : first + batch_size], out=out)
            served[number] += batch_size
            first = (first + batch_size) % rows.shape[0]
            if time.perf_counter() - start >= job["seconds"]:
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(served))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.perf_counter() - start
    return {
        "setup_seconds": setup,
        "first_seconds": 0.0,
        "windows": sum(served),
        "seconds": passed,
        "windows_per_second": sum(served) / passed,
        "later_windows_per_second": sum(served) / passed,
    }


if __name__ == "__main__":
    run(side)
