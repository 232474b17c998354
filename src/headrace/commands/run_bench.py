"""One run of ``bench``: configuration and index in, a table or a JSON object out."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from headrace.commands.bench_table import bench_table, quality_table
from headrace.commands.configuration import read_config
from headrace.commands.loaders import with_fixed_budget
from headrace.commands.options import NO_WORKER
from headrace.commands.output_file import refuse_unwritable
from headrace.commands.run_setup import ensure_index, index_of
from headrace.commands.terminal import make_console
from headrace.index_place import IndexPath
from headrace.loader import Index, WindowLoader
from headrace.loader.bench import advice, run_bench
from headrace.loader.machine import hardware, versions
from headrace.schemas.config import Config, Split
from headrace.schemas.config_io import config_digest
from headrace.schemas.hydro_setting import Source
from headrace.trainer.device import choose_device
from headrace.trainer.training_step import TrainingStep, fresh_step


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """What the command line asks for.

    Parameters
    ----------
    config_file, index_folder, datasets, overrides, source
        As for ``train``; one of the first three is there.
    split
        Windows to serve.
    max_basins
        Basins of each data set to serve; None serves all.
    steps
        Batches to time.
    compute
        Whether to train a model on each batch.
    cuda_prefetch
        Whether the command line asks that batches are brought to the GPU ahead of use.
    """

    config_file: Path | None
    index_folder: IndexPath | None
    datasets: Sequence[str] | None
    overrides: Sequence[str]
    source: Source | None
    split: Split
    max_basins: int | None
    steps: int
    compute: bool
    cuda_prefetch: bool


def run(request: BenchRequest, *, json_out: Path | None, as_json: bool) -> None:
    """Measure, print, and write the row.

    Parameters
    ----------
    request
        What to measure.
    json_out
        File that takes the row; replaced where it is there.
    as_json
        Print the row instead of the table.

    Raises
    ------
    ConfigError, SourceError, StaleIndexError
        Settings, stores and index do not fit each other, or the file cannot be written.
    """
    if json_out is not None:
        refuse_unwritable(json_out, f"--json-out {json_out}")
    # With --json standard output is the row and nothing else.
    row = _measure(request, Console(stderr=True) if as_json else make_console())
    line = json.dumps(row, allow_nan=False, sort_keys=True)
    if json_out is not None:
        json_out.write_text(line + "\n", encoding="utf-8")
    if as_json:
        click.echo(line)
        return
    console = make_console()
    console.print(bench_table(row))
    console.print(quality_table(row["shuffle_quality"]))
    for text in (*row["notes"], row["advice"]):
        console.print(text, markup=False, highlight=False)


def _measure(request: BenchRequest, console: Console) -> dict[str, Any]:
    config = read_config(
        request.config_file, request.index_folder, request.overrides, request.datasets, request.source
    )  # fmt: skip
    device = str(choose_device(config.train.device))
    config = with_fixed_budget(config)
    folder = ensure_index(config, request.index_folder, console)
    with index_of(config, folder) as index:
        basins = _first_basins(index, config, request.split, request.max_basins)

        def open_loader() -> WindowLoader:
            return WindowLoader(
                index, request.split, batch_size=config.loader.batch_size, seed=config.loader.seed, device=device,
                memory_budget=config.loader.memory_budget, window=config.window, missing=config.missing,
                normalization=config.normalization, sampling=config.sampling, datasets=list(config.datasets),
                basins=basins, shuffle=True, drop_last=False, num_workers=config.loader.num_workers,
                cache_dir=config.loader.cache_dir, cache_limit=config.loader.cache_limit,
                device_memory_budget=config.loader.device_memory_budget,
                prefetch_factor=config.loader.prefetch_factor, cuda_prefetch=config.loader.cuda_prefetch,
                cuda_prefetch_batches=config.loader.cuda_prefetch_batches, timeout=config.loader.timeout,
                weights={name: dataset.weight for name, dataset in config.datasets.items()},
            )  # fmt: skip

        def make_step(loader: WindowLoader) -> TrainingStep:
            return fresh_step(loader, config.train, device, config.loader.seed)

        result = run_bench(open_loader, steps=request.steps, make_step=make_step if request.compute else None)
    threads = os.cpu_count() or 1
    workers = threads if config.loader.num_workers == "auto" else config.loader.num_workers
    return {
        **result.as_dict(),
        "advice": advice(result, num_workers=workers, num_threads=threads),
        "notes": _notes(request, device),
        "settings": {
            "index": str(folder),
            "datasets": list(config.datasets),
            "split": request.split,
            "max_basins": request.max_basins,
            "batch_size": config.loader.batch_size,
            "window": config.window.model_dump(mode="json"),
            "num_workers": workers,
            "memory_budget_bytes": config.loader.memory_budget,
            "cache_dir": config.loader.cache_dir,
            "rounds_ahead": config.loader.prefetch_factor,
            "device": device,
            "seed": config.loader.seed,
            "normalization": config.normalization.method,
            "target_nan_policy": config.missing.target_nan_policy,
            "hidden_size": config.train.hidden_size if request.compute else None,
            "config_digest": config_digest(config),
        },
        "versions": versions(),
        "hardware": hardware(),
        "date": date.today().isoformat(),
    }


def _first_basins(index: Index, config: Config, split: Split, most: int | None) -> dict[str, list[str]] | None:
    """Return the first basins of each data set that have the split, in the order of the index."""
    if most is None:
        return None
    chosen = {}
    for dataset_id in config.datasets:
        table = index.fetch("basins", dataset_id=dataset_id)
        rows = zip(table.column("basin_id").to_pylist(), table.column("splits").to_pylist(), strict=True)
        chosen[dataset_id] = [basin for basin, splits in rows if split in splits.split(",")][:most]
    return chosen


def _notes(request: BenchRequest, device: str) -> list[str]:
    """Say which flags did not do what their names promise."""
    notes = []
    if "loader.num_workers=0" in request.overrides:
        notes.append(NO_WORKER)
    if request.cuda_prefetch and device == "cpu":
        notes.append("--cuda-prefetch: batches stay on the CPU, so nothing is copied ahead.")
    return notes
