"""One pass over a split without learning: its loss, and the median NSE over basins."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import torch

from headrace.trainer.checkpoint import EpochSums
from headrace.trainer.loss import Loss
from headrace.trainer.loss_meter import LossMeter
from headrace.trainer.metrics import StreamingMetrics, median
from headrace.trainer.model import LSTMModel
from headrace.trainer.protocols import Loader, Progress, Silent


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
    model: LSTMModel,
    loader: Loader,
    loss: Loss,
    *,
    amp: bool = False,
    progress: Progress | None = None,
    task: str = "validation",
    between_batches: Callable[[], None] = lambda: None,
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
    amp
        Compute in bfloat16 where torch sees fit.
    progress, task
        Who is told, and what the pass is called.
    between_batches
        Called after each batch; may raise to stop.

    Raises
    ------
    NonFiniteLossError
        The loss of a batch is not finite.
    ConfigError
        No target was observed.
    """
    device = next(model.parameters()).device
    metrics = StreamingMetrics(loader.dataset_ids, loader.basin_ids, loader.y_names)
    progress = progress or Silent()
    sums = EpochSums()
    meter = LossMeter(loader, loss, sums, task)
    was_training = model.training
    model.eval()
    loader.set_epoch(0)
    progress.begin(task, len(loader))
    clock = started = perf_counter()
    try:
        with torch.inference_mode():
            for done, host_batch in enumerate(loader, start=1):
                sums.wait_seconds += perf_counter() - clock
                batch = host_batch.to(device)
                with torch.autocast(device.type, dtype=torch.bfloat16, enabled=amp):
                    predicted = model(batch.x, batch.static, loader.window.target_length).float()
                meter.add(batch, *loss.mean_square(predicted, batch))
                metrics.update(
                    batch.dataset.cpu().numpy(),
                    batch.basin.cpu().numpy(),
                    batch.y[:, -1].cpu().numpy(),
                    predicted[:, -1].cpu().numpy(),
                )
                clock = perf_counter()
                progress.update(
                    done,
                    loss=meter.loss(),
                    samples_per_second=sums.num_windows / (clock - started),
                    wait_share=sums.wait_seconds / (clock - started),
                )
                between_batches()
        return Validation(loss=meter.final_loss(), nse_median=median(metrics.basin_nse().ravel()))
    finally:
        progress.finish()
        model.train(was_training)
