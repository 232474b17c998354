"""One training run, new or resumed: configuration and index in, run folder out. ``train`` and ``demo`` both call it."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from headrace.commands.index_record import IndexRecord
from headrace.commands.loaders import open_loader, refuse_unobserved, with_fixed_budget
from headrace.commands.run_setup import index_of
from headrace.commands.run_watcher import RunWatcher
from headrace.index_place import IndexPath
from headrace.loader import Index, WindowLoader
from headrace.schemas.config import SPLITS, Config, Split, SplitBasins
from headrace.schemas.config_io import config_digest, dump_config
from headrace.schemas.errors import StaleIndexError
from headrace.trainer.device import choose_device
from headrace.trainer.launch import joined
from headrace.trainer.loop import FitResult, fit
from headrace.trainer.model import build_model
from headrace.trainer.model_config import model_config_for
from headrace.trainer.plots import plot_loss
from headrace.trainer.progress import RichProgress
from headrace.trainer.protocols import Silent
from headrace.trainer.ranks import Ranks
from headrace.trainer.run_folder import RunFolder
from headrace.trainer.tensorboard import TensorBoardLog, require_tensorboard

_LOSS_NAMES = {"nse": "NSE* loss", "rmse": "RMSE", "mse": "MSE", "mae": "MAE", "quantile": "quantile loss"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """How a run ended, and where it lies."""

    result: FitResult
    folder: RunFolder
    index: IndexPath
    validated: bool
    next_split: str
    """Split worth evaluating: test where there is a test period, else valid, else train."""


def run_training(
    config: Config, index_folder: IndexPath, run_folder: Path, console: Console, *, resume: bool = False
) -> TrainedRun:
    """Train a model, or go on training it; of processes that torchrun started every one calls it.

    Parameters
    ----------
    config
        Of the run; with ``resume`` the run's own.
    index_folder
        A finished index of the configuration's stores.
    run_folder
        New or empty; with ``resume`` the folder of a run. Rank 0 decides and writes.
    console
        Takes a line on what is trained; progress goes to standard error.
    resume
        Go on from the last checkpoint; a run that was killed before its first one begins.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, when the checkpoint to go on from is written.
    ConfigError, SourceError, StaleIndexError
        Configuration, index and stores do not fit each other.
    """
    device = choose_device(config.train.device)
    if config.train.tensorboard:
        require_tensorboard()
    with joined(device) as ranks, ExitStack() as stack:
        config, run_folder = ranks.from_first(lambda: (with_fixed_budget(config), run_folder))
        index = stack.enter_context(index_of(config, index_folder))
        train = stack.enter_context(open_loader(index, config, "train", training=True, device=str(device)))
        validates = "valid" in _splits(config)
        valid = stack.enter_context(open_loader(index, config, "valid", device=str(device))) if validates else None
        for loader in filter(None, (train, valid)):
            refuse_unobserved(index, loader)
        model = build_model(model_config_for(train, config.train), seed=config.loader.seed).to(device)
        folder, begun = _start(run_folder, config, index, ranks, resume=resume)
        if not begun and ranks.first:
            stack.enter_context(_unborn_taken_back(folder))
        if ranks.first:
            line = _headline(train, valid, folder, f"{device}, {ranks.size} processes" if ranks.size > 1 else device)
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        progress = stack.enter_context(RichProgress()) if ranks.first else Silent()
        logs = config.train.tensorboard and ranks.first
        log = stack.enter_context(TensorBoardLog(folder.tensorboard)) if logs else None
        result = fit(
            model,
            train,
            valid,
            config.train,
            folder,
            progress,
            seed=config.loader.seed,
            config_digest=config_digest(config),
            resume=begun,
            watcher=RunWatcher(train, log) if ranks.first else None,
        )
        if ranks.first:
            plot_loss(folder.metrics, folder.plots / "loss.png", _LOSS_NAMES[config.train.loss])
    return TrainedRun(
        result=result, folder=folder, index=index_folder, validated=validates, next_split=_next_split(config)
    )


def _start(run_folder: Path, config: Config, index: Index, ranks: Ranks, *, resume: bool) -> tuple[RunFolder, bool]:
    """Open the folder of a run, or let rank 0 make it; the second value says whether the run has begun already."""

    def make() -> tuple[RunFolder, bool]:
        if resume:
            folder = RunFolder.open(run_folder)
            folder.sweep()
            if not folder.unborn:
                return folder, True
        else:
            folder = RunFolder.create(run_folder)
            folder.write_config(dump_config(config))
        IndexRecord.of(index).write(folder)
        return folder, False

    return ranks.from_first(make)


@contextmanager
def _unborn_taken_back(folder: RunFolder) -> Iterator[None]:
    """Remove a run that can be neither resumed nor started again in its folder.

    That is one that was stopped before its first checkpoint, and one that a changed store stopped in its first epoch:
    the index has to be brought up to date, and a checkpoint goes on with its own index only.
    """
    stale = False
    try:
        yield
    except StaleIndexError:
        stale = True
        raise
    finally:
        if not folder.last.exists() or (stale and not folder.metrics.exists()):
            shutil.rmtree(folder.path)


def _headline(train: WindowLoader, valid: WindowLoader | None, folder: RunFolder, where: object) -> str:
    basins = " + ".join(f"{len(ids)} of {name}" for name, ids in zip(train.dataset_ids, train.basin_ids, strict=True))
    validation = "no validation period" if valid is None else f"validation on {valid.num_windows:,}"
    size = train.batch_size if train.world_size == 1 else f"{train.world_size} × {train.batch_size}"
    return (
        f"Training on {train.num_windows:,} windows (basins: {basins}), {len(train):,} batches of {size} "
        f"an epoch, {validation}, on {where}, into {folder.path}"
    )


def _splits(config: Config) -> set[Split]:
    """Return the splits that a data set has a period for, and basins."""
    return {
        split
        for dataset in config.datasets.values()
        for split in SPLITS
        if dataset.period(split) is not None
        and (not isinstance(dataset.basins, SplitBasins) or getattr(dataset.basins, split))
    }


def _next_split(config: Config) -> Split:
    known = _splits(config)
    return next(split for split in reversed(SPLITS) if split in known)
