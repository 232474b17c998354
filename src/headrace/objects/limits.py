"""How many requests a process has under way at once: what the configuration allows, and its open files leave room for.

``min(storage.concurrency, max(1, (soft limit of open files − files open at the first request) / 2))``: a request takes
one connection, and as many may be idle. All clients of a process with the same setting share one pool of threads.
"""

import os
import resource
from functools import lru_cache

from headrace.objects.request_threads import RequestThreads
from headrace.schemas.storage_config import StorageConfig


def concurrency(storage: StorageConfig) -> int:
    """Return how many requests this process may have under way."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return storage.concurrency
    try:
        held = len(os.listdir("/proc/self/fd"))
    except OSError:
        held = 64
    return min(storage.concurrency, max(1, (soft - held) // 2))


def request_pool(storage: StorageConfig) -> RequestThreads:
    """Return the threads that send this process's requests; as many as may be under way at once."""
    return _pool(storage.concurrency, storage, os.getpid())


@lru_cache(maxsize=4)
def _pool(wanted: int, storage: StorageConfig, process: int) -> RequestThreads:
    return RequestThreads(concurrency(storage))
