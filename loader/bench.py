"""Time a loader as a training loop meets it: how long each batch is waited for, and how long the work on it takes.

A loader is opened, served for some batches, and closed; one record says how fast it was and what it read. What to do
about a loader that is too slow is one sentence, worked out from the record alone.
"""

import resource
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from headrace.loader.advice import Waiting
from headrace.loader.batch import Batch
from headrace.loader.shuffle_quality import measure_quality
from headrace.loader.utilization import UtilizationSampler
from headrace.loader.window_loader import WindowLoader
from headrace.objects.counts import request_counts

Step = Callable[[Batch], None]
"""Work on one batch; returns when it is done, but for what a GPU still computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """One measurement.

    Parameters
    ----------
    samples_per_second
        Windows served, by the seconds from asking for the first batch to the end of the work on the last one.
    avg_dataloader_wait_seconds, avg_compute_seconds
        Per batch: until it was there, and the work on it.
    avg_gpu_util_percent
        Mean utilisation of the GPU meanwhile; None where there is none, or the driver does not say.
    first_batch_seconds
        From before the loader was made, its tables read and its plan drawn up, to the first batch.
    steps, windows
        Batches and windows served.
    bytes_read, chunks_read
        Stored bytes and store chunks read meanwhile.
    storage_requests, storage_retries, storage_throttles
        Sent to object storage from before the loader was made; those of them sent again after a fault; answers that
        asked for fewer. 0 for stores on a disk.
    read_amplification
        Chunks read by chunks that the split needs: 1 when each was read once, less when some were not read yet.
    spill_bytes
        Disk that decoded rows take; 0 for a split that stays in memory.
    peak_rss_bytes
        Largest resident memory of the process so far, whatever it did before included.
    resident
        Whether the whole split stays in memory.
    num_windows
        Windows of the split.
    shuffle_quality
        What :func:`headrace.loader.shuffle_quality.measure_quality` says of the epoch, and ``by_tenth`` of it.
    """

    samples_per_second: float
    avg_dataloader_wait_seconds: float
    avg_compute_seconds: float
    avg_gpu_util_percent: float | None
    first_batch_seconds: float
    steps: int
    windows: int
    bytes_read: int
    chunks_read: int
    storage_requests: int
    storage_retries: int
    storage_throttles: int
    read_amplification: float
    spill_bytes: int
    peak_rss_bytes: int
    resident: bool
    num_windows: int
    shuffle_quality: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-ready values."""
        return asdict(self)


def run_bench(
    open_loader: Callable[[], WindowLoader],
    *,
    steps: int,
    make_step: Callable[[WindowLoader], Step] | None = None,
) -> BenchResult:
    """Open a loader, time its first batches, look at how they are mixed, and close it.

    Parameters
    ----------
    open_loader
        Makes the loader; what that takes counts into the first batch.
    steps
        Batches to time; an epoch that ends before is followed by the next.
    make_step
        Makes the work on a batch; None does nothing.
    """
    started, before = time.perf_counter(), request_counts()
    with open_loader() as loader:
        opened = time.perf_counter() - started
        quality = measure_quality(loader)
        step = None if make_step is None else make_step(loader)
        on_gpu = loader.device.type == "cuda"
        with UtilizationSampler.of(loader.device) as sampler:
            times = _serve(loader, steps, step, drain=_drain_gpu if on_gpu else None)
        asked = request_counts() - before
        return BenchResult(
            samples_per_second=times.windows / (times.wait_seconds + times.compute_seconds),
            avg_dataloader_wait_seconds=times.wait_seconds / steps,
            avg_compute_seconds=times.compute_seconds / steps,
            avg_gpu_util_percent=sampler.mean,
            first_batch_seconds=opened + times.first_wait_seconds,
            steps=steps,
            windows=times.windows,
            bytes_read=loader.bytes_read,
            chunks_read=loader.chunks_read,
            storage_requests=asked.requests,
            storage_retries=asked.retries,
            storage_throttles=asked.throttles,
            read_amplification=loader.read_amplification,
            spill_bytes=loader.spill_nbytes,
            peak_rss_bytes=peak_rss_nbytes(),
            resident=loader.resident,
            num_windows=loader.num_windows,
            shuffle_quality={**quality.as_dict(), "by_tenth": quality.by_tenth},
        )


@dataclass(slots=True)
class _Times:
    windows: int = 0
    wait_seconds: float = 0.0
    compute_seconds: float = 0.0
    first_wait_seconds: float = 0.0


def _drain_gpu() -> None:
    """Wait for what this thread queued on the GPU, and for what that waits for; copies of later batches go on."""
    torch.cuda.current_stream().synchronize()


def _serve(loader: WindowLoader, steps: int, step: Step | None, *, drain: Callable[[], None] | None) -> _Times:
    times = _Times()
    batches = _epochs(loader)
    try:
        for number in range(steps):
            asked = time.perf_counter()
            batch = next(batches)
            if drain is not None:
                drain()
            arrived = time.perf_counter()
            times.wait_seconds += arrived - asked
            if number == 0:
                times.first_wait_seconds = arrived - asked
            times.windows += len(batch)
            if step is not None:
                step(batch)
                if drain is not None:
                    drain()
                times.compute_seconds += time.perf_counter() - arrived
    finally:
        batches.close()
    return times


def _epochs(loader: WindowLoader) -> Generator[Batch, None, None]:
    while True:
        yield from loader


def peak_rss_nbytes() -> int:
    """Return the largest resident memory that this program has had, in bytes."""
    try:
        # getrusage would also tell the memory of the process that started this one.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def advice(result: BenchResult, *, num_workers: int, num_threads: int) -> str:
    """Return one sentence: what to change when batches are waited for longer than they are worked on.

    Parameters
    ----------
    result
        The measurement.
    num_workers
        Reader threads of the loader.
    num_threads
        Threads the processor runs at a time.
    """
    wait, compute = result.avg_dataloader_wait_seconds, result.avg_compute_seconds
    if wait <= compute:
        share = wait / (wait + compute)
        return f"The loader keeps up: {share:.1%} of the time is waiting for data."
    waiting = Waiting(
        num_workers=num_workers, num_threads=num_threads, resident=result.resident, bytes_read=result.bytes_read,
        chunks_read=result.chunks_read, first_pass=result.windows <= result.num_windows,
    )  # fmt: skip
    return f"Data wait exceeds compute: {waiting.remedy('time more batches with --steps to see later epochs')}"
