"""Runs that differ in their seed only: one folder each, side by side, and a table of how much the seed matters.

config.yml      what the runs have in common        seeds.json    the seeds, and the index
seed-1/ …       a run each                          seeds.csv     a row per seed, then mean and std
"""

import json
import math
import shutil
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from headrace.commands.loaders import with_fixed_budget
from headrace.commands.run_training import TrainedRun, run_training
from headrace.index_place import IndexPath
from headrace.schemas.config import Config
from headrace.schemas.config_io import dump_config, load_config
from headrace.schemas.errors import ConfigError, describe
from headrace.trainer.device import choose_device
from headrace.trainer.launch import joined
from headrace.trainer.run_folder import SEEDS_NAME, RunFolder, read_csv, replacing, write_csv

_SCORES = ("train_loss", "valid_loss", "valid_nse_median")
COLUMNS = ("seed", "num_epochs", "best_epoch", *_SCORES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededRuns:
    """Several runs in one folder.

    Parameters
    ----------
    folder
        Where they lie.
    config
        What they have in common.
    index
        What they are trained from.
    seeds
        In their order.
    """

    folder: Path
    config: Config
    index: IndexPath
    seeds: tuple[int, ...]

    @classmethod
    def read(cls, folder: Path, index: IndexPath | None = None) -> "SeededRuns":
        """Read what a folder of runs was begun with; ``index`` says where the index lies now.

        Raises
        ------
        ConfigError
            ``seeds.json`` cannot be read.
        """
        place = folder / SEEDS_NAME
        try:
            content = json.loads(place.read_text(encoding="utf-8"))
            seeds, found = tuple(map(int, content["seeds"])), str(content["index"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                describe(
                    "the seeds of these runs cannot be read",
                    where=str(place),
                    expected="the file that train --seeds wrote there",
                    got=str(error),
                    fix="put the file back, or go on with each run by itself: --resume --run-dir …/seed-N",
                )
            ) from error
        place_of_index = found if "://" in found else Path(found)
        return cls(folder=folder, config=load_config(folder / "config.yml"), index=index or place_of_index, seeds=seeds)

    def run_folder(self, seed: int) -> Path:
        """Return the folder of one run."""
        return self.folder / f"seed-{seed}"

    def write(self) -> None:
        """Write ``config.yml`` and ``seeds.json`` into a new folder."""
        RunFolder.refuse_used(self.folder)
        index = self.index if isinstance(self.index, str) else self.index.absolute()
        with replacing(self.folder / "config.yml") as partial:
            partial.write_text(dump_config(self.config), encoding="utf-8")
        text = json.dumps({"seeds": self.seeds, "index": str(index)}, indent=1)
        with replacing(self.folder / SEEDS_NAME) as partial:
            partial.write_text(text + "\n", encoding="utf-8")


def read_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds in ``1,2,3``.

    Raises
    ------
    ValueError
        They are no different whole numbers.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and part.isascii() for part in parts):
        msg = f"expected whole numbers such as 1,2,3, got {text!r}"
        raise ValueError(msg)
    seeds = tuple(int(part) for part in parts)
    if len(set(seeds)) < len(seeds):
        msg = f"a seed is named twice in {text!r}"
        raise ValueError(msg)
    return seeds


def train_seeds(
    config: Config, index: IndexPath, folder: Path, seeds: Sequence[int], console: Console
) -> list[TrainedRun]:
    """Train a run per seed, one after the other.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; finished runs stay, and the one at work has its checkpoint.
    ConfigError, SourceError, StaleIndexError
        See :func:`run_training`.
    """
    with joined(choose_device(config.train.device)) as ranks:

        def begin() -> SeededRuns:
            # One budget for all seeds: it is part of what the order of windows depends on.
            runs = SeededRuns(folder=folder, config=with_fixed_budget(config), index=index, seeds=tuple(seeds))
            runs.write()
            return runs

        runs = ranks.from_first(begin)
        with _empty_folder_removed(runs) if ranks.first else nullcontext():
            return _train(runs, console)


def resume_seeds(folder: Path, index: IndexPath | None, console: Console) -> list[TrainedRun]:
    """Go on with runs that :func:`train_seeds` began: those that are finished stay as they are.

    Raises
    ------
    KeyboardInterrupt, ConfigError, SourceError, StaleIndexError
        As there.
    """
    runs = SeededRuns.read(folder, index)
    with joined(choose_device(runs.config.train.device)):
        return _train(runs, console)


def _train(runs: SeededRuns, console: Console) -> list[TrainedRun]:
    done = []
    with joined(choose_device(runs.config.train.device)) as ranks:
        for seed in runs.seeds:
            own = runs.run_folder(seed)
            begun = ranks.from_first(partial(_begun, own))
            loader = runs.config.loader.model_copy(update={"seed": seed})
            config = load_config(own / "config.yml") if begun else runs.config.model_copy(update={"loader": loader})
            done.append(run_training(config, runs.index, own, console, resume=begun))
        if ranks.first:
            rows = _rows(done)
            write_csv(runs.folder / "seeds.csv", COLUMNS, rows)
            console.print(_table(rows, validated=done[0].validated))
    return done


def _begun(own: Path) -> bool:
    """Return whether a run has something to go on from; what one leaves that was killed before that is removed."""
    if not RunFolder(own).unborn:
        return True
    if own.exists():
        shutil.rmtree(own)
    return False


@contextmanager
def _empty_folder_removed(runs: SeededRuns) -> Iterator[None]:
    """Take the folder back when not even the first run has come to a checkpoint: nothing could go on in it."""
    try:
        yield
    except BaseException:
        if not any(runs.run_folder(seed).exists() for seed in runs.seeds):
            for name in ("config.yml", SEEDS_NAME):
                (runs.folder / name).unlink(missing_ok=True)
            runs.folder.rmdir()
        raise


def _rows(done: Sequence[TrainedRun]) -> list[list[str]]:
    """Return a row per seed, of its best epoch, then the mean and the sample std; NaN where there is none."""
    rows, values = [], []
    for run in done:
        best = run.result.best_epoch
        found = next(row for row in read_csv(run.folder.metrics) if int(row["epoch"]) == best)
        values.append([float(found[name] or "nan") for name in _SCORES])
        seed = run.folder.path.name.removeprefix("seed-")
        rows.append([seed, str(run.result.num_epochs), str(best), *(_text(value) for value in values[-1])])
    columns = list(zip(*values, strict=True))
    rows.append(["mean", "", "", *(_text(statistics.fmean(column)) for column in columns)])
    spread = [statistics.stdev(column) if len(column) > 1 else math.nan for column in columns]
    return [*rows, ["std", "", "", *(_text(value) for value in spread)]]


def _text(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _table(rows: Sequence[Sequence[str]], *, validated: bool) -> Table:
    """Return the rows for a terminal."""
    table = Table(title="The best epoch of each seed", title_justify="left", header_style="bold")
    names = ["seed", "epochs", "best epoch", "training loss"]
    for name in [*names, "validation loss", "validation NSE, median"] if validated else names:
        table.add_column(name, justify="right")
    for seed, epochs, best, *scores in rows:
        if seed == "mean":
            table.add_section()
        shown = [f"{float(value):.4f}" if value else "–" for value in scores]
        table.add_row(seed, epochs, str(int(best) + 1) if best else "", *(shown if validated else shown[:1]))
    return table
