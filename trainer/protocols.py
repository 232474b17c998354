"""What the trainer asks of a loader, and nothing more.

The trainer never imports the loader: `headrace.loader.WindowLoader` fits these protocols, and so does the small
in-memory loader of the tests.

Letters: B batch, L input steps, P target steps, Vx inputs, Vs statics, Vy targets, S basins of a data set.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray


class Batch(Protocol):
    """One batch of windows."""

    @property
    def x(self) -> torch.Tensor:
        """float32 [B, L, Vx], normalised."""

    @property
    def static(self) -> torch.Tensor:
        """float32 [B, Vs], normalised; Vs may be 0."""

    @property
    def y(self) -> torch.Tensor:
        """float32 [B, P, Vy], normalised, NaN = missing."""

    @property
    def dataset(self) -> torch.Tensor:
        """int32 [B], position in the loader's ``dataset_ids``."""

    @property
    def basin(self) -> torch.Tensor:
        """int32 [B], position in that data set's list in ``basin_ids``."""

    @property
    def start(self) -> torch.Tensor:
        """int32 [B], the store's time step of the first input; the last target step is ``start + L - 1``."""

    def to(self, device: torch.device) -> Self:
        """Return the batch on ``device``."""


class Window(Protocol):
    """Shape of a window, in steps."""

    @property
    def length(self) -> int:
        """L."""

    @property
    def target_length(self) -> int:
        """P."""


class Loader(Protocol):
    """Batches of one split, epoch after epoch."""

    @property
    def x_names(self) -> Sequence[str]:
        """Names of the Vx inputs."""

    @property
    def static_names(self) -> Sequence[str]:
        """Names of the Vs statics."""

    @property
    def y_names(self) -> Sequence[str]:
        """Names of the Vy targets."""

    @property
    def dataset_ids(self) -> Sequence[str]:
        """Ids of the data sets."""

    @property
    def basin_ids(self) -> Sequence[Sequence[str]]:
        """Per data set, the ids of its basins."""

    @property
    def y_std(self) -> Sequence[NDArray[np.float32]]:
        """Per data set, float32 [S, Vy]: the scale the targets were divided by, in physical units."""

    @property
    def y_train_std(self) -> Sequence[NDArray[np.float64]]:
        """Per data set, float64 [S, Vy]: each basin's own std over the training period, physical units, NaN = none."""

    @property
    def window(self) -> Window:
        """Shape of the windows."""

    @property
    def index_digest(self) -> str:
        """Digest of the index the windows come from."""

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches of the epoch that are still to come."""

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch, counted from 0."""

    def end_iteration(self) -> None:
        """Let a thread that waits for a batch get RuntimeError instead; any thread may call it."""

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is: every batch it has yielded counts as consumed.

        ``windows_consumed`` of the epoch's ``epoch_windows`` are done, over all ranks.
        """

    # Any: a loader may name its own mapping type here.
    def load_state_dict(self, state: Any) -> None:
        """Go to where ``state`` was taken."""

    # Any: a loader's own batch type is narrower than the protocol.
    def denormalize(self, y: torch.Tensor, batch: Any) -> torch.Tensor:
        """Return ``y`` [B, P, Vy] of ``batch`` in physical units."""


class Progress(Protocol):
    """Somebody who is told how far a pass over a loader has come."""

    def begin(self, task: str, total: int, done: int = 0) -> None:
        """Start a pass of ``total`` batches of which ``done`` were made before."""

    def update(self, done: int, *, loss: float | None, samples_per_second: float, wait_share: float) -> None:
        """Say that ``done`` batches are made; ``wait_share`` is the part of the time spent waiting for data."""

    def finish(self, summary: str | None = None) -> None:
        """End the pass; ``summary`` is one line worth keeping."""


class Silent:
    """Progress that says nothing."""

    def begin(self, task: str, total: int, done: int = 0) -> None:
        """Do nothing."""

    def update(self, done: int, *, loss: float | None, samples_per_second: float, wait_share: float) -> None:
        """Do nothing."""

    def finish(self, summary: str | None = None) -> None:
        """Do nothing."""


class Utilization(Protocol):
    """How busy a GPU is while a ``with`` block runs."""

    @property
    def mean(self) -> float | None:
        """Mean percent; None where nobody says."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End."""


class Watcher(Protocol):
    """Somebody who follows the epochs of a run; it changes nothing in them."""

    def utilization(self) -> Utilization:
        """Return what watches the GPU during a training pass."""

    # Any: a row of the run folder, which knows of this module.
    def epoch_done(self, row: Any) -> str | None:
        """Take an epoch's row, and return a line worth showing, if any."""


class Unwatched:
    """Nobody follows the epochs."""

    mean = None

    def utilization(self) -> Utilization:
        """Return what says nothing."""
        return self

    def epoch_done(self, row: Any) -> str | None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def describe_windows(loader: Loader, batch: Batch, rows: torch.Tensor, limit: int = 5) -> str:
    """Name the windows of a batch for a message: data set, basin and first step of up to ``limit`` rows.

    Parameters
    ----------
    loader
        Knows the ids.
    batch
        The batch.
    rows
        int64 [N], positions in the batch.
    limit
        Most windows to name.
    """
    chosen = rows[:limit].tolist()
    named = [
        f"{loader.dataset_ids[d]}/{loader.basin_ids[d][b]} (start {s})"
        for d, b, s in ((int(batch.dataset[row]), int(batch.basin[row]), int(batch.start[row])) for row in chosen)
    ]
    more = f" and {len(rows) - limit} more" if len(rows) > limit else ""
    return ", ".join(named) + more


def count_basins(basin_ids: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return int64 [D + 1]: where each data set's basins begin when all are put in one list, and their number."""
    return np.cumsum([0, *(len(ids) for ids in basin_ids)], dtype=np.int64)


TargetUnits = Mapping[tuple[str, str], str]
"""(Data set, target) → its physical unit; units may differ between data sets."""
