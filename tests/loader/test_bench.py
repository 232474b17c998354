"""What a measurement says to do follows from its numbers; a GPU that says nothing is no error."""

import threading
from typing import Any

import pytest

from headrace.loader.bench import BenchResult, advice
from headrace.loader.utilization import UtilizationSampler

MIB = 2**20


def result(**changed: Any) -> BenchResult:
    """A split in memory, read from large chunks in the first tenth of an epoch, for which a model waits."""
    settings: dict[str, Any] = {
        "samples_per_second": 1000.0, "avg_dataloader_wait_seconds": 0.3, "avg_compute_seconds": 0.1,
        "avg_gpu_util_percent": None, "first_batch_seconds": 1.0, "steps": 10, "windows": 5_000, "bytes_read": 80 * MIB,
        "chunks_read": 8, "storage_requests": 0, "storage_retries": 0, "storage_throttles": 0,
        "read_amplification": 1.0, "spill_bytes": 0, "peak_rss_bytes": 500 * MIB, "resident": True,
        "num_windows": 50_000, "shuffle_quality": {},
    }  # fmt: skip
    return BenchResult(**{**settings, **changed})


@pytest.mark.parametrize(
    ("changed", "num_workers", "words"),
    [
        ({}, 1, "--num-workers"),
        ({"resident": False, "spill_bytes": 3 * MIB}, 2, "--memory-budget"),
        ({"resident": False, "spill_bytes": 3 * MIB}, 2, "loader.cache_dir"),
        ({"chunks_read": 8_000}, 2, "store chunks hold 10.2 KiB"),
        ({}, 2, "--steps"),
        ({"windows": 500_000}, 2, "a larger model"),
        ({"avg_compute_seconds": 0.0}, 1, "Data wait exceeds compute"),
    ],
)
def test_a_model_that_waits_is_told_which_setting_to_change(changed, num_workers, words):
    said = advice(result(**changed), num_workers=num_workers, num_threads=2)
    assert words in said
    assert said.startswith("Data wait exceeds compute")


def test_a_model_that_does_not_wait_is_told_so():
    said = advice(result(avg_compute_seconds=2.7), num_workers=1, num_threads=2)
    assert said == "The loader keeps up: 10.0% of the time is waiting for data."


def test_utilisation_is_the_mean_of_what_the_driver_says():
    said, heard = iter([20, 40, 60]), threading.Event()

    def probe() -> float:
        value = next(said, None)
        if value is None:
            heard.set()
            raise RuntimeError("the driver has gone")
        return value

    with UtilizationSampler(probe, interval=0.001) as sampler:
        assert heard.wait(10)
    assert sampler.mean == 40


def test_without_a_gpu_there_is_no_utilisation():
    with UtilizationSampler(None) as sampler:
        pass
    assert sampler.mean is None
