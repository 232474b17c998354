"""Start the run or the runs that ``train`` was asked for, or go on with them, and say how they ended."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console

from headrace.commands.index_record import IndexRecord
from headrace.commands.interrupts import STOPPED
from headrace.commands.run_training import TrainedRun, run_training
from headrace.commands.seeds import resume_seeds, train_seeds
from headrace.index_place import IndexPath
from headrace.schemas.config import Config
from headrace.schemas.config_io import load_config
from headrace.trainer.launch import is_first
from headrace.trainer.run_folder import SEEDS_NAME, RunFolder


def start(config: Config, index: IndexPath, folder: Path, seeds: Sequence[int], console: Console) -> list[TrainedRun]:
    """Train a new run, or one for each of several seeds."""
    if seeds:
        return _until_stopped(folder, lambda: train_seeds(config, index, folder, seeds, console))
    return _until_stopped(folder, lambda: [run_training(config, index, folder, console)])


def go_on(folder: Path, index: IndexPath | None, console: Console) -> list[TrainedRun]:
    """Go on with what :func:`start` began; ``index`` says where the index lies now."""
    if (folder / SEEDS_NAME).exists():
        return _until_stopped(folder, lambda: resume_seeds(folder, index, console))
    run = RunFolder.open(folder)
    place = IndexRecord.read(run).path if index is None else index
    return _until_stopped(folder, lambda: [run_training(load_config(run.config), place, folder, console, resume=True)])


def _until_stopped(folder: Path, train: Callable[[], list[TrainedRun]]) -> list[TrainedRun]:
    """Train; after Ctrl-C say how to go on, where there is something to go on with."""
    try:
        return train()
    except KeyboardInterrupt:
        if not is_first():
            sys.exit(STOPPED)  # rank 0 says it
        if not (folder / "checkpoints" / "last.pt").exists() and not (folder / SEEDS_NAME).exists():
            raise
        raise click.Abort(f"Go on with: headrace train --resume --run-dir {folder}") from None


def summarize(runs: Sequence[TrainedRun]) -> None:
    """Say where the results are, and what to do next; of several processes one says it."""
    if not is_first():
        return
    if len(runs) == 1:
        _summarize(runs[0])
        return
    click.echo(f"\nTrained {len(runs)} runs, from the index {runs[0].index}")
    click.echo(f"  each seed    {runs[0].folder.path.parent / 'seeds.csv'}")
    for run in runs:
        click.echo(f"Next: headrace evaluate {run.folder.path} --split {run.next_split}")


def _summarize(trained: TrainedRun) -> None:
    result, folder = trained.result, trained.folder
    kind = "validation" if trained.validated else "training"
    epochs = "1 epoch" if result.num_epochs == 1 else f"{result.num_epochs} epochs"
    early = ", where the loss stopped falling" if result.stopped_early else ""
    click.echo(
        f"\nTrained {epochs}{early}; the best is epoch {result.best_epoch + 1}, {kind} loss {result.best_loss:.4f}"
    )
    click.echo(f"  best model   {folder.best}")
    click.echo(f"  each epoch   {folder.metrics}")
    click.echo(f"  loss curve   {folder.plots / 'loss.png'}")
    click.echo(f"  index        {trained.index}")
    click.echo(f"Next: headrace evaluate {folder.path} --split {trained.next_split}")
