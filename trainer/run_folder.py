"""The folder of one training run: where everything lies, and how it gets there whole.

    config.yml                 the configuration, written by the caller
    metrics.csv                one row per finished epoch
    tensorboard/               the same for TensorBoard, where asked for
    checkpoints/last.pt        where to go on            checkpoints/best.pt    the best epoch so far
    plots/                     pictures
    evaluation/<split>/        metrics.csv, predictions.zarr

Every file is written beside its place and moved there, so a kill leaves the old one or the new one.
"""

import contextlib
import csv
import io
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.manifest import MANIFEST_NAME

SEEDS_NAME = "seeds.json"
"""Names the runs of several seeds in a folder that holds them."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; move it to ``path`` when the block ends well, remove it otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_csv(path: Path, columns: tuple[str, ...], rows: list[list[str]]) -> None:
    """Write a table whole."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    with replacing(path) as partial:
        partial.write_text(text.getvalue(), encoding="utf-8")


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a table as one mapping per row; an absent file is an empty table."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRow:
    """One row of a run's ``metrics.csv``; the fields are its columns.

    Parameters
    ----------
    epoch
        Counted from 0, as in the configuration's ``learning_rate_schedule`` and the loader's ``set_epoch``.
    train_loss, valid_loss
        Loss over all observed targets of the epoch, in the loss's own (normalised) units; None without validation.
    valid_nse_median
        Median over basins (and targets) of the NSE of the windows' last target step; None without validation, and
        where it is defined for none.
    learning_rate
        At the end of the epoch.
    samples_per_second
        Windows per second of the training pass, waiting included.
    data_wait_seconds, compute_seconds
        Average per training batch: waiting for the loader, and everything else.
    gpu_util_percent
        Mean utilisation of the GPU during the training pass; None where there is none, or its driver does not say.
    seconds
        Of the epoch: training pass and validation.
    """

    epoch: int
    train_loss: float
    valid_loss: float | None
    valid_nse_median: float | None
    learning_rate: float
    samples_per_second: float
    data_wait_seconds: float
    compute_seconds: float
    gpu_util_percent: float | None
    seconds: float


EPOCH_COLUMNS = tuple(field.name for field in fields(EpochRow))


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of a run. Use :meth:`create` or :meth:`open`.

    Parameters
    ----------
    path
        The folder.
    """

    path: Path

    @classmethod
    def refuse_used(cls, path: str | Path) -> None:
        """Refuse a folder that a new run cannot have, before any work is done for it.

        Raises
        ------
        ConfigError
            The folder already holds something.
        """
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ConfigError(
                describe(
                    "the run folder is already in use",
                    where=str(path),
                    expected="a new or empty folder",
                    got="a folder with files in it" if path.is_dir() else "a file",
                    fix=f"go on with this run: headrace train --resume --run-dir {path}; or choose another --run-dir"
                    if (path / "checkpoints").is_dir()
                    else "choose another --run-dir",
                )
            )

    @classmethod
    def create(cls, path: str | Path) -> "RunFolder":
        """Make the folder of a new run.

        Raises
        ------
        ConfigError
            The folder already holds something, or cannot be made.
        """
        cls.refuse_used(path)
        folder = cls(Path(path))
        try:
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                describe(
                    "the run folder cannot be made",
                    where=str(path),
                    expected="a folder that may be made and written to",
                    got=error.strerror or str(error),
                    fix="choose another --run-dir, or ask for the right to write there",
                )
            ) from error
        return folder

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Open the folder of a run that was started before.

        Raises
        ------
        ConfigError
            There is no run in it.
        """
        folder = cls(Path(path))
        if not folder.checkpoints.is_dir():
            raise ConfigError(
                describe(
                    "this is no run folder",
                    where=str(path),
                    expected="a folder that `headrace train` wrote (its --run-dir), with checkpoints/ in it",
                    got=_content(folder.path),
                    fix="give the folder of a run; `headrace train` starts one",
                )
            )
        return folder

    @property
    def config(self) -> Path:
        """The configuration the run was started with."""
        return self.path / "config.yml"

    @property
    def metrics(self) -> Path:
        """One row per finished epoch."""
        return self.path / "metrics.csv"

    @property
    def tensorboard(self) -> Path:
        """Folder of TensorBoard's files."""
        return self.path / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def last(self) -> Path:
        """The checkpoint to go on from."""
        return self.checkpoints / "last.pt"

    @property
    def best(self) -> Path:
        """The checkpoint of the best epoch so far."""
        return self.checkpoints / "best.pt"

    @property
    def unborn(self) -> bool:
        """Whether the run was ended before its first checkpoint: there is nothing in it to go on from, or to lose."""
        return not (self.last.exists() or self.best.exists() or self.metrics.exists())

    @property
    def plots(self) -> Path:
        """Folder of pictures."""
        return self.path / "plots"

    def evaluation(self, split: str) -> Path:
        """Folder of the results on a split."""
        return self.path / "evaluation" / split

    def sweep(self) -> None:
        """Remove what a killed process left half written beside checkpoints and tables; no process may be writing."""
        for folder in (self.path, self.checkpoints):
            for partial in folder.glob(".*.partial"):
                partial.unlink(missing_ok=True)

    def write_config(self, text: str) -> None:
        """Write ``config.yml``."""
        with replacing(self.config) as partial:
            partial.write_text(text, encoding="utf-8")

    def record_epoch(self, row: EpochRow) -> None:
        """Write the row of an epoch; it takes the place of that epoch's and any later row.

        A run that was killed after a row was written and before its checkpoint was does that epoch again.
        """
        kept = [
            [old.get(name) or "" for name in EPOCH_COLUMNS]
            for old in read_csv(self.metrics)
            if int(old["epoch"]) < row.epoch
        ]
        new = ["" if value is None else str(value) for value in asdict(row).values()]
        write_csv(self.metrics, EPOCH_COLUMNS, [*kept, new])


def _content(path: Path) -> str:
    """Say what lies where a run should."""
    if not path.exists():
        return "nothing there"
    if not path.is_dir():
        return "a file"
    if (path / MANIFEST_NAME).exists():
        return "an index, as build-index writes it"
    if (path / SEEDS_NAME).exists():
        return f"the runs of several seeds: give one of {', '.join(sorted(map(str, path.glob('seed-*'))))}"
    names = sorted(p.name for p in path.iterdir())
    return f"a folder with {', '.join(names[:5])}{', …' if len(names) > 5 else ''}" if names else "an empty folder"
