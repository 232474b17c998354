"""The epochs of a run for TensorBoard, as scalars in a folder of its own; an extra, ``headrace[tensorboard]``."""

from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.schemas.errors import ConfigError, describe
from headrace.trainer.run_folder import EpochRow

_TAGS = {
    "train_loss": "loss/train",
    "valid_loss": "loss/valid",
    "valid_nse_median": "nse/valid_median",
    "learning_rate": "learning_rate",
    "samples_per_second": "performance/samples_per_second",
    "data_wait_seconds": "performance/avg_dataloader_wait_seconds",
    "compute_seconds": "performance/avg_compute_seconds",
    "gpu_util_percent": "performance/avg_gpu_util_percent",
    "seconds": "performance/epoch_seconds",
}


def require_tensorboard() -> Any:
    """Return the class that writes TensorBoard's files.

    Raises
    ------
    ConfigError
        The package is not installed.
    """
    try:
        return import_module("torch.utils.tensorboard").SummaryWriter
    except ImportError as error:
        raise ConfigError(
            describe(
                "TensorBoard is not installed",
                where="--tensorboard, train.tensorboard",
                expected="the package tensorboard beside Headrace",
                got=str(error),
                fix="pip install 'headrace[tensorboard]', or train without; metrics.csv has the same numbers",
            )
        ) from error


class TensorBoardLog:
    """Writes a row of ``metrics.csv`` as scalars, one step an epoch. A context manager.

    Parameters
    ----------
    folder
        Made with the first row. Steps from that row's epoch on which an earlier part of the run left there are void.
    """

    def __init__(self, folder: Path) -> None:
        self._make, self._folder = require_tensorboard(), folder
        self._writer: Any = None

    def write(self, row: EpochRow) -> None:
        """Write what the row has; the file is complete up to it when this returns."""
        if self._writer is None:
            self._writer = self._make(log_dir=str(self._folder), purge_step=row.epoch)
        values = asdict(row)
        for name, tag in _TAGS.items():
            if values[name] is not None:
                self._writer.add_scalar(tag, values[name], row.epoch)
        self._writer.flush()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
