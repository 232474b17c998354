"""Adds up a pass's losses and stops at the first that is not finite, naming the windows it came from.

On a GPU the numbers are read one batch late, through pinned memory and an event, so that watching costs no wait.
"""

import math

import torch

from headrace.schemas.errors import ConfigError, HeadraceError, describe
from headrace.trainer.checkpoint import EpochSums
from headrace.trainer.loss import Loss
from headrace.trainer.protocols import Batch, Loader, describe_windows


class NonFiniteLossError(HeadraceError):
    """A loss or a gradient became NaN or infinite: the weights after it are worthless."""


class LossMeter:
    """Loss of a pass, exact whatever the batches' sizes.

    Parameters
    ----------
    loader
        Serves the batches; names their windows in an error.
    loss
        Turns the mean square into the loss.
    sums
        Added to in place.
    task
        What the pass is called in an error, such as ``epoch 3, training``.
    """

    def __init__(self, loader: Loader, loss: Loss, sums: EpochSums, task: str) -> None:
        self._loader = loader
        self._loss = loss
        self._sums = sums
        self._task = task
        self._pending: tuple[torch.Tensor, torch.cuda.Event | None, Batch] | None = None

    def add(
        self, batch: Batch, mean_square: torch.Tensor, count: torch.Tensor, gradient_norm: torch.Tensor | None = None
    ) -> None:
        """Add one batch.

        Parameters
        ----------
        batch
            The batch.
        mean_square, count
            What :meth:`Loss.mean_square` returned, float32 [] and int64 [].
        gradient_norm
            float32 [], watched too when given.

        Raises
        ------
        NonFiniteLossError
            This batch's numbers (on a GPU: the batch before's) are not finite.
        """
        norm = torch.zeros_like(mean_square) if gradient_norm is None else gradient_norm
        values = torch.stack([mean_square.detach().double(), count.double(), norm.detach().double()])
        self.flush()
        if values.device.type != "cuda":
            self._pending = (values, None, batch)
            self.flush()
            return
        host = torch.empty(3, dtype=torch.float64, pin_memory=True)
        host.copy_(values, non_blocking=True)
        event = torch.cuda.current_stream().record_event()
        self._pending = (host, event, batch)

    def flush(self) -> None:
        """Take in the batch that is still on its way."""
        if self._pending is None:
            return
        values, event, batch = self._pending
        self._pending = None
        if event is not None:
            event.synchronize()
        mean_square, count, norm = values.tolist()
        if not (math.isfinite(mean_square) and math.isfinite(norm)):
            raise self._error(batch, mean_square, norm)
        self._sums.mean_square_sum += mean_square * count
        self._sums.num_observed += int(count)
        self._sums.num_windows += len(batch.start)
        self._sums.num_batches += 1

    def loss(self) -> float | None:
        """Return the loss so far, None before the first observed target."""
        if not self._sums.num_observed:
            return None
        mean_square = torch.tensor(self._sums.mean_square_sum / self._sums.num_observed, dtype=torch.float64)
        return float(self._loss.finish(mean_square))

    def final_loss(self) -> float:
        """Return the loss of the whole pass.

        Raises
        ------
        ConfigError
            No target was observed in it.
        """
        self.flush()
        loss = self.loss()
        if loss is None:
            raise ConfigError(
                describe(
                    "there is nothing to learn from: no target was observed",
                    where=self._task,
                    expected="windows with at least one observed target",
                    got=f"{self._sums.num_windows} windows, none with an observed target",
                    fix="check the period, the basins and missing.target_nan_policy (`headrace inspect INDEX dropped`)",
                )
            )
        return loss

    def _error(self, batch: Batch, mean_square: float, norm: float) -> NonFiniteLossError:
        bad_input = ~(torch.isfinite(batch.x).flatten(1).all(1) & torch.isfinite(batch.static).all(1))
        bad_target = torch.isinf(batch.y).flatten(1).any(1)
        bad = torch.nonzero(bad_input | bad_target).flatten()
        if len(bad):
            cause = f"inputs or targets that are not finite in {describe_windows(self._loader, batch, bad)}"
            fix = "look at these basins' values; set valid_min and valid_max, or missing_values, for the variable"
        else:
            everything = torch.arange(len(batch.start))
            cause = f"finite data in a batch with {describe_windows(self._loader, batch, everything)}"
            fix = "the weights have diverged: lower train.learning_rate or set train.clip_gradient_norm, and resume"
        return NonFiniteLossError(
            describe(
                "the loss is no longer finite",
                where=f"{self._task}, batch {self._sums.num_batches}",
                expected="a finite loss and gradient",
                got=f"mean square {mean_square}, gradient norm {norm}, from {cause}",
                fix=fix,
            )
        )
