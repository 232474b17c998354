"""Time a loader as a training loop meets it: how long each batch is waited for, and how long the work on it takes.

A loader is opened, served for some batches, and closed; one record says how fast it was and what it read. What to do
about a loader that is too slow is one sentence, worked out from the record alone.
"""

import resource
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from headrace.loader.batch import Batch
from headrace.loader.budget import human_nbytes
from headrace.loader.shuffle_quality import measure_quality
from headrace.loader.window_loader import WindowLoader

Step = Callable[[Batch], None]
"""Work on one batch; returns when it is done, but for what a GPU still computes."""

_SMALL_CHUNK_NBYTES = 2**20
_GPU_INTERVAL_SECONDS = 0.1


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
    started = time.perf_counter()
    with open_loader() as loader:
        opened = time.perf_counter() - started
        quality = measure_quality(loader)
        step = None if make_step is None else make_step(loader)
        on_gpu = loader.device.type == "cuda"
        with UtilizationSampler(torch.cuda.utilization if on_gpu else None) as sampler:
            times = _serve(loader, steps, step, drain=_drain_gpu if on_gpu else None)
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


class UtilizationSampler:
    """Ask for the utilisation of a GPU several times a second while a block runs.

    Parameters
    ----------
    probe
        Returns percent; None, or a probe that fails, gives no mean.
    interval
        Seconds between two questions.
    """

    def __init__(self, probe: Callable[[], float] | None, interval: float = _GPU_INTERVAL_SECONDS) -> None:
        self._probe, self._interval = probe, interval
        self._seen: list[float] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="headrace-gpu-sampler", daemon=True)

    @property
    def mean(self) -> float | None:
        """Mean percent, or None where nothing was to be had."""
        return sum(self._seen) / len(self._seen) if self._seen else None

    def _sample(self) -> None:
        assert self._probe is not None
        while True:
            try:
                self._seen.append(float(self._probe()))
            except (ModuleNotFoundError, RuntimeError):  # the driver's library is not installed, or does not say
                return
            if self._end.wait(self._interval):
                return

    def __enter__(self) -> "UtilizationSampler":
        """Begin."""
        if self._probe is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End and join the thread."""
        self._end.set()
        if self._probe is not None:
            self._thread.join()


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
    said = "Data wait exceeds compute"
    if num_workers < num_threads:
        return f"{said}: raise --num-workers, {num_workers} of {num_threads} processor threads read and gather."
    if not result.resident:
        return (
            f"{said}: the split does not stay in memory; raise --memory-budget, or set loader.cache_dir to a fast "
            "disk, where decoded rows are kept for later epochs and runs."
        )
    if result.chunks_read and result.bytes_read / result.chunks_read < _SMALL_CHUNK_NBYTES:
        size = human_nbytes(result.bytes_read / result.chunks_read)
        return (
            f"{said}: store chunks hold {size} on average; a store with chunks of several MiB, whole time series of "
            "many basins, is read with fewer calls."
        )
    if result.windows <= result.num_windows:
        return (
            f"{said}: most of it is the first reading, and the split stays in memory after that; time more batches "
            "with --steps to see later epochs."
        )
    return f"{said}: batches come as fast as memory copies them, so only a larger model would leave no wait."
