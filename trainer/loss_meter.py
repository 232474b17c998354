"""Adds up a pass's losses and stops at the first that is not finite, naming the windows it came from.

On a GPU the numbers are read one batch late, through pinned memory and an event, so that watching costs no wait.
"""

import math

import torch

from headrace.schemas.errors import ConfigError, HeadraceError, describe
from headrace.trainer.checkpoint import EpochSums
from headrace.trainer.loss import Loss
from headrace.trainer.protocols import Batch, Loader, describe_windows
from headrace.trainer.ranks import Ranks


class NonFiniteLossError(HeadraceError):
    """A loss or a gradient became NaN or infinite: the weights after it are worthless."""


def totals_of(
    error: torch.Tensor, weight: torch.Tensor, batch: Batch, ranks: Ranks, *,
    stop: bool = False, save: bool = False, lacking: bool = False,
) -> torch.Tensor:  # fmt: skip
    """Return the sums over all ranks that :class:`LossMeter` takes in, float64 [6].

    Parameters
    ----------
    error, weight
        What :meth:`Loss.add_up` returned.
    batch
        This rank's batch, whose windows are counted.
    ranks
        Who adds up.
    stop, save
        What this rank asks for; as part of the sums, all ranks learn of it at the same batch.
    lacking
        Whether its batch did not come: the last of the sums is how many ranks lack theirs.
    """
    counts = torch.tensor([len(batch.start), stop, save, lacking], dtype=torch.float64, device=error.device)
    return ranks.add_up(torch.cat([torch.stack([error.detach().double(), weight.detach().double()]), counts]))


class LossMeter:
    """Loss of a pass, exact whatever the batches' sizes.

    Parameters
    ----------
    loader
        Serves the batches; names their windows in an error.
    loss
        Turns the mean error into the loss.
    sums
        Added to in place.
    task
        What the pass is called in an error, such as ``epoch 3, training``.
    ranks
        The processes that make the pass together; all see the same sums.

    Attributes
    ----------
    stop_asked, save_asked
        Whether some rank asked to stop, or to write a checkpoint.
    """

    def __init__(self, loader: Loader, loss: Loss, sums: EpochSums, task: str, ranks: Ranks | None = None) -> None:
        self._loader = loader
        self._loss = loss
        self._sums = sums
        self._task = task
        self._ranks = ranks or Ranks()
        self._pending: tuple[torch.Tensor, torch.cuda.Event | None, Batch] | None = None
        self.stop_asked = self.save_asked = False

    def add(self, batch: Batch, totals: torch.Tensor, gradient_norm: torch.Tensor | None = None) -> None:
        """Add one batch.

        Parameters
        ----------
        batch
            This rank's batch.
        totals
            What :func:`totals_of` returned.
        gradient_norm
            float32 [], watched too when given.

        Raises
        ------
        NonFiniteLossError
            This batch's numbers (on a GPU: the batch before's) are not finite; on every rank.
        """
        norm = torch.zeros_like(totals[:1]) if gradient_norm is None else gradient_norm.detach().double()[None]
        values = torch.cat([totals, norm])
        self.flush()
        if values.device.type != "cuda":
            self._pending = (values, None, batch)
            self.flush()
            return
        host = torch.empty(len(values), dtype=torch.float64, pin_memory=True)
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
        error, weight, windows, stop, save, _, norm = values.tolist()
        if not (math.isfinite(error) and math.isfinite(norm)):
            raise self._error(batch, error, norm)
        self._sums.error_sum += error
        self._sums.weight_sum += weight
        self._sums.num_windows += int(windows)
        self._sums.num_batches += 1
        self.stop_asked, self.save_asked = self.stop_asked or stop > 0, self.save_asked or save > 0

    def loss(self) -> float | None:
        """Return the loss so far, None before the first observed target."""
        if not self._sums.weight_sum:
            return None
        mean = torch.tensor(self._sums.error_sum / self._sums.weight_sum, dtype=torch.float64)
        return float(self._loss.finish(mean))

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

    def _error(self, batch: Batch, error: float, norm: float) -> NonFiniteLossError:
        bad_input = ~(torch.isfinite(batch.x).flatten(1).all(1) & torch.isfinite(batch.static).all(1))
        bad_target = torch.isinf(batch.y).flatten(1).any(1)
        bad = torch.nonzero(bad_input | bad_target).flatten()
        # Every rank is here: the sums are the same on all. The windows to blame may be another's.
        blamed = self._ranks.gather(describe_windows(self._loader, batch, bad) if len(bad) else "")
        if any(blamed):
            cause = f"inputs or targets that are not finite in {', '.join(filter(None, blamed))}"
            fix = "look at these basins' values; set valid_min and valid_max, or missing_values, for the variable"
        else:
            everything = torch.arange(len(batch.start))
            cause = f"finite data in a batch with {describe_windows(self._loader, batch, everything)}"
            fix = "the weights have diverged: begin a new run with a lower train.learning_rate or clip_gradient_norm"
        return NonFiniteLossError(
            describe(
                "the loss is no longer finite",
                where=f"{self._task}, batch {self._sums.num_batches}",
                expected="a finite loss and gradient",
                got=f"sum of errors {error}, gradient norm {norm}, from {cause}",
                fix=fix,
            )
        )
