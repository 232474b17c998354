"""Twenty epochs: no more threads and no more memory than after the second; plans are few objects (E5, E6)."""

import gc
import json
import subprocess
import sys

import numpy as np
import pytest

from headrace.loader.layout import lay_out
from headrace.loader.schedule import plan_epoch
from headrace.loader.tiles import cut_tiles, tile_starts
from headrace.loader.windows import Windows

SCRIPT = """
import json, sys, threading
import psutil, headrace
process = psutil.Process()
with headrace.open_index(sys.argv[1]) as index:
    for budget in (2**30, 2400):
        with headrace.WindowLoader(index, "train", batch_size=8, memory_budget=budget, num_workers=2) as loader:
            seen = []
            for _ in range(20):
                assert sum(len(batch) for batch in loader) == loader.num_windows
                seen.append([process.memory_info().rss, threading.active_count()])
            print(json.dumps([loader.resident, seen]))
"""


@pytest.mark.slow
def test_twenty_epochs_need_no_more_memory_or_threads_than_two(index):
    """Field case E6: resident and in rounds."""
    command = [sys.executable, "-c", SCRIPT, str(index.path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [resident for resident, _ in answers] == [True, False]
    for _, seen in answers:
        (second, threads), (last, threads_last) = seen[1], seen[-1]
        assert last <= 1.05 * second
        assert threads_last <= threads


def test_a_plan_is_a_few_arrays_however_many_windows_there_are():
    """Field case E5: nothing that a forked or threaded reader could touch object by object."""
    runs, basins = 200_000, 20_000
    rng = np.random.default_rng(2)
    start = np.tile(np.arange(runs // basins) * 1000, basins).astype(np.int32)
    count = rng.integers(1, 600, runs)
    windows = Windows(
        dataset=np.zeros(runs, np.int16),
        basin=np.repeat(np.arange(basins), runs // basins).astype(np.int32),
        start=start,
        stop=(start + count).astype(np.int32),
        num_windows=count.astype(np.int64),
        stride=1,
    )
    gc.collect()
    before = len(gc.get_objects())
    layout = lay_out(windows, 365)
    tiles = cut_tiles(windows, layout, 365, tile_starts(layout, 365, layout.num_rows // 8))
    plan = plan_epoch(
        tiles,
        np.zeros(basins, np.int64),
        seed=0,
        epoch=1,
        round_steps=layout.num_rows // 8,
        shuffle=True,
        resident=False,
    )
    assert plan.num_windows == windows.total > 5e7
    assert len(gc.get_objects()) - before < 100
