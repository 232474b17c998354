"""How a loader serves, apart from what: arguments over the index's ``loader`` section, checked one by one."""

import os
from dataclasses import dataclass

import torch

from headrace.loader.arguments import folder, seconds, usable_device, whole_number, yes_or_no
from headrace.loader.budget import memory_budget_nbytes, parse_nbytes
from headrace.schemas.config import LoaderConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that changes no window and no value.

    Parameters
    ----------
    batch_size
        Windows per rank and batch.
    seed
        Key of the shuffle, with the epoch.
    device
        Where batches are put.
    memory_budget
        As it was asked for.
    budget_nbytes
        The same in bytes.
    drop_last
        Leave out a last batch that is not full.
    num_workers
        Reader threads, and as many gather threads.
    cache_dir
        Folder in which decoded rows are kept; None keeps none, and ``off`` spills none.
    cache_limit_nbytes
        What decoded rows may take on disk; None: whatever there is.
    device_budget_nbytes
        Memory of the device for decoded rows; None is a quarter of what is free.
    prefetch_factor
        Rounds read ahead of the one being served.
    cuda_prefetch
        Whether rows or batches come to the device ahead of use.
    cuda_prefetch_batches
        Batches on their way to the device where rows do not fit there.
    timeout
        Seconds to wait for a batch; None waits for ever.
    rank_local
        Whether every rank serves windows of its own.
    """

    batch_size: int
    seed: int
    device: torch.device
    memory_budget: str | int
    budget_nbytes: int
    drop_last: bool
    num_workers: int
    cache_dir: str | None
    cache_limit_nbytes: int | None
    device_budget_nbytes: int | None
    prefetch_factor: int
    cuda_prefetch: bool
    cuda_prefetch_batches: int
    timeout: float | None
    rank_local: bool


def resolve_settings(
    defaults: LoaderConfig,
    *,
    batch_size: object,
    seed: object,
    device: object,
    memory_budget: str | int | None,
    drop_last: object,
    num_workers: object,
    cache_dir: object,
    cache_limit: str | int | None,
    device_memory_budget: str | int | None,
    prefetch_factor: object,
    cuda_prefetch: object,
    cuda_prefetch_batches: object,
    timeout: object,
    rank_local: object,
) -> Settings:
    """Combine arguments with the configuration, which counts where an argument is None.

    Raises
    ------
    ConfigError
        An argument is of the wrong kind or out of range.
    """
    budget = defaults.memory_budget if memory_budget is None else memory_budget
    room = defaults.device_memory_budget if device_memory_budget is None else device_memory_budget
    limit = defaults.cache_limit if cache_limit is None else cache_limit
    threads = defaults.num_workers if num_workers is None else num_workers
    return Settings(
        batch_size=whole_number("batch_size", defaults.batch_size if batch_size is None else batch_size),
        seed=whole_number("seed", defaults.seed if seed is None else seed, least=0),
        device=usable_device(device),
        memory_budget=budget,
        budget_nbytes=memory_budget_nbytes(budget),
        drop_last=yes_or_no("drop_last", defaults.drop_last if drop_last is None else drop_last),
        num_workers=_num_threads(threads),
        cache_dir=folder("cache_dir", defaults.cache_dir if cache_dir is None else cache_dir),
        cache_limit_nbytes=None if limit is None else parse_nbytes(limit, "cache_limit"),
        device_budget_nbytes=None if room is None else parse_nbytes(room, "device_memory_budget"),
        prefetch_factor=whole_number(
            "prefetch_factor", defaults.prefetch_factor if prefetch_factor is None else prefetch_factor
        ),
        cuda_prefetch=yes_or_no("cuda_prefetch", defaults.cuda_prefetch if cuda_prefetch is None else cuda_prefetch),
        cuda_prefetch_batches=whole_number(
            "cuda_prefetch_batches",
            defaults.cuda_prefetch_batches if cuda_prefetch_batches is None else cuda_prefetch_batches,
        ),
        timeout=seconds("timeout", defaults.timeout if timeout is None else timeout),
        rank_local=yes_or_no("rank_local", rank_local),
    )


def _num_threads(asked: object) -> int:
    """Return the number of threads; 0, which other loaders take for none, is one."""
    return (os.cpu_count() or 1) if asked == "auto" else max(whole_number("num_workers", asked, least=0), 1)
