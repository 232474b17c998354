"""One pass over a split without learning: its loss, and the median NSE over basins."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch

from headrace.trainer.checkpoint import EpochSums
from headrace.trainer.interrupt import InterruptGuard
from headrace.trainer.loss import Loss
from headrace.trainer.loss_meter import LossMeter, totals_of
from headrace.trainer.metrics import StreamingMetrics, median
from headrace.trainer.model import SequenceModel
from headrace.trainer.precision import Precision
from headrace.trainer.protocols import Batch, Loader, Progress, Silent
from headrace.trainer.ranks import Ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Result of a pass.

    Parameters
    ----------
    loss
        Over all observed targets, in the loss's own (normalised) units.
    nse_median
        Median over basins and targets of the NSE of each window's last target step; NaN when nowhere defined. NSE is
        the same in normalised and physical units, because a basin's values share one offset and scale.
    """

    loss: float
    nse_median: float


def validate(
    model: SequenceModel,
    loader: Loader,
    loss: Loss,
    *,
    precision: Precision | None = None,
    ranks: Ranks | None = None,
    progress: Progress | None = None,
    task: str = "validation",
    guard: InterruptGuard | None = None,
    stop: Callable[[], None] = lambda: None,
) -> Validation:
    """Run the model over a split.

    Parameters
    ----------
    model
        Left in training or evaluation mode as it was.
    loader
        Batches of the split; one whole pass is made.
    loss
        With the basin scales of ``loader``.
    precision
        Format of the forward pass; None is float32.
    ranks
        The processes that share each batch of ``loader``; all get the result of the whole.
    progress, task
        Who is told, and what the pass is called.
    guard
        Knows whether this rank has been asked to stop; None: it never is.
    stop
        Called, on all ranks after the same batch, when some rank has been; may raise.

    Raises
    ------
    NoBatchError
        The rank is alone, has been asked to stop, and no batch comes.
    NonFiniteLossError
        The loss of a batch is not finite.
    ConfigError
        No target was observed.
    """
    device = next(model.parameters()).device
    precision, ranks = precision or Precision(device.type), ranks or Ranks()
    guard = guard or InterruptGuard(alone=ranks.size == 1)
    metrics = StreamingMetrics(loader.dataset_ids, loader.basin_ids, loader.y_names)
    progress = progress or Silent()
    sums = EpochSums()
    meter = LossMeter(loader, loss, sums, task, ranks)
    was_training = model.training
    model.eval()
    loader.set_epoch(0)
    progress.begin(task, len(loader))
    clock = started = perf_counter()
    try:
        with torch.inference_mode():
            for done, host_batch in enumerate(guard.batches(loader), start=1):
                sums.wait_seconds += perf_counter() - clock
                batch = host_batch.to(device)
                with precision.autocast():
                    predicted = model(batch.x, batch.static, loader.window.target_length)
                asked = guard.requested
                meter.add(batch, totals_of(*loss.add_up(predicted, batch), batch, ranks, stop=asked))
                _update(metrics, batch, model.central(predicted), ranks)
                clock = perf_counter()
                progress.update(
                    done,
                    loss=meter.loss(),
                    samples_per_second=sums.num_windows / (clock - started),
                    wait_share=sums.wait_seconds / (clock - started),
                )
                if meter.stop_asked or (asked and ranks.size == 1):
                    stop()
        return Validation(loss=meter.final_loss(), nse_median=median(metrics.basin_nse().ravel()))
    finally:
        progress.finish()
        model.train(was_training)


def _update(metrics: StreamingMetrics, batch: Batch, predicted: torch.Tensor, ranks: Ranks) -> None:
    """Add the last target step of every rank's windows: the global batch in its order, so the result is one process's.

    Parameters
    ----------
    metrics
        Takes them.
    batch
        This rank's share.
    predicted
        float32 [B, P, Vy].
    ranks
        Who share the batch.
    """
    own = [batch.dataset[:, None], batch.basin[:, None], batch.y[:, -1], predicted[:, -1]]
    rows = ranks.rows(torch.cat([part.double() for part in own], dim=1)).numpy()
    obs, sim = np.split(rows[:, 2:].astype(np.float32), 2, axis=1)
    metrics.update(rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32), obs, sim)
