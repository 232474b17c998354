"""A run's configuration → the loader of one of its splits; training and evaluation both open theirs here."""

import os
from typing import Literal

from headrace.loader import Index, WindowLoader
from headrace.loader.budget import memory_budget_nbytes
from headrace.loader.observed_targets import any_target_observed
from headrace.schemas.config import Config, SamplingConfig, Split
from headrace.schemas.errors import ConfigError, describe
from headrace.trainer.launch import processes_here
from headrace.trainer.time_axis import TimeAxis

EPOCH = "seconds since 1970-01-01"


def open_loader(
    index: Index,
    config: Config,
    split: Split,
    *,
    training: bool = False,
    device: str = "cpu",
    batch_size: int | None = None,
) -> WindowLoader:
    """Open the loader of a split with everything the configuration says, whatever the index was built with.

    Parameters
    ----------
    index
        Built from the stores, basins, periods and variables of ``config``.
    config
        Of the run.
    split
        train, valid or test.
    training
        Shuffled, and sampled as configured. Else the split is served whole and in order, so that scores do not depend
        on settings of training.
    device
        Where batches go.
    batch_size
        Instead of the configuration's.
    """
    settings = config.loader
    return WindowLoader(
        index,
        split,
        batch_size=batch_size or settings.batch_size,
        seed=settings.seed,
        device=device,
        memory_budget=settings.memory_budget,
        window=config.window,
        missing=config.missing,
        normalization=config.normalization,
        sampling=config.sampling if training else SamplingConfig(),
        weights={name: dataset.weight for name, dataset in config.datasets.items()},
        datasets=list(config.datasets),
        shuffle=training,
        drop_last=settings.drop_last if training else False,
        num_workers=_share_of_threads(settings.num_workers),
        cache_dir=settings.cache_dir,
        cache_limit=settings.cache_limit,
        device_memory_budget=settings.device_memory_budget,
        prefetch_factor=settings.prefetch_factor,
        cuda_prefetch=settings.cuda_prefetch,
        cuda_prefetch_batches=settings.cuda_prefetch_batches,
        timeout=settings.timeout,
    )


def refuse_unobserved(index: Index, loader: WindowLoader) -> None:
    """Refuse a split that nothing can be learnt from, or chosen by: none of its windows has an observed target.

    Raises
    ------
    ConfigError
        Said from the tables of the index; no chunk is read.
    """
    windows = loader.serving.windows
    if any_target_observed(index, loader.dataset_ids, loader.y_names, windows, loader.window):
        return
    targets = ", ".join(loader.y_names)
    raise ConfigError(
        describe(
            f"no target is observed in the split {loader.split}",
            where=", ".join(f"datasets.{name}.t_range_{loader.split}" for name in loader.dataset_ids),
            expected=f"windows with at least one observed value of {targets}",
            got=f"{loader.num_windows:,} windows, none with one",
            fix=f"choose another period or other basins (headrace inspect {index.path} coverage shows where there are "
            "values)" + (", or leave the period out to train without validation" if loader.split == "valid" else ""),
        )
    )


def _share_of_threads(num_workers: int | Literal["auto"]) -> int | Literal["auto"]:
    """Return the reader threads of this process: of processes that torchrun started each takes its part of ``auto``."""
    if num_workers != "auto" or processes_here() == 1:
        return num_workers
    return max((os.cpu_count() or 1) // processes_here(), 1)


def with_fixed_budget(config: Config) -> Config:
    """Return the configuration with ``memory_budget: auto`` resolved to bytes, shared by the processes of this host.

    The budget decides in which order windows come, and a resumed run must see the same order whatever memory is free
    then.
    """
    budget = memory_budget_nbytes(config.loader.memory_budget)
    if config.loader.memory_budget == "auto":
        budget //= processes_here()
    return config.model_copy(update={"loader": config.loader.model_copy(update={"memory_budget": budget})})


def with_budget_per_worker(config: Config, mib: int) -> Config:
    """Return the configuration with a memory budget of so many MiB for each of its reader threads."""
    workers = config.loader.num_workers
    budget = mib * 2**20 * ((os.cpu_count() or 1) if workers == "auto" else workers)
    return config.model_copy(update={"loader": config.loader.model_copy(update={"memory_budget": budget})})


def time_axes(index: Index, dataset_ids: list[str]) -> dict[str, TimeAxis]:
    """Return the whole time axis of each data set, as predictions carry it."""
    axes = {name: index.time_axis(name) for name in dataset_ids}
    return {name: TimeAxis(values=a.seconds(), units=EPOCH, calendar=a.calendar) for name, a in axes.items()}


def target_units(index: Index) -> dict[tuple[str, str], str]:
    """Return (data set, target) → unit, of those that have one."""
    rows = index.sql("SELECT dataset_id, variable, unit FROM variables WHERE role = 'target'").to_pylist()
    return {(row["dataset_id"], row["variable"]): row["unit"] for row in rows if row["unit"]}
