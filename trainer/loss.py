"""Losses on normalised targets that skip what was not observed.

`mse` underneath, `rmse` its root, `nse` the basin-averaged NSE* of Kratzert et al. (2019,
https://doi.org/10.5194/hess-23-5089-2019, equation 8), which weighs every basin alike however much water it carries.

Letters: B batch, P target steps, Vy targets, K basins of all data sets in one list.
"""

from typing import Literal, Protocol

import numpy as np
import torch

from headrace.trainer.protocols import Batch, Loader, count_basins

LossName = Literal["nse", "rmse", "mse"]

NSE_EPSILON = 0.1
"""Added to a basin's std, in normalised units, so that a nearly dry basin does not outweigh all others."""


class Loss(Protocol):
    """A loss that can be summed exactly over batches of any size."""

    def mean_square(self, predicted: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the weighted mean square over observed targets, float32 [], and their number, int64 []."""

    def finish(self, mean_square: torch.Tensor) -> torch.Tensor:
        """Return the loss of a mean square."""


def masked_mean_square(
    predicted: torch.Tensor, y: torch.Tensor, weight: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean of the (weighted) squared errors over the observed targets.

    Parameters
    ----------
    predicted
        float32 [B, P, Vy], normalised.
    y
        float32 [B, P, Vy], normalised, NaN = missing.
    weight
        float32 [B, Vy], or None for 1 everywhere.

    Returns
    -------
    mean_square : torch.Tensor
        float32 [], 0 with a zero gradient when nothing was observed.
    count : torch.Tensor
        int64 [], observed targets.
    """
    observed = ~torch.isnan(y)
    # The subtraction's derivative is 1 whatever y is, so NaN never reaches a gradient.
    square = torch.where(observed, predicted.float() - y, 0.0).square()
    if weight is not None:
        square = square * weight[:, None, :]
    count = observed.sum()
    return square.sum() / count.clamp_min(1), count


def safe_sqrt(value: torch.Tensor) -> torch.Tensor:
    """Return the square root, with gradient 0 instead of infinity where ``value`` is 0."""
    positive = value > 0
    return torch.where(positive, torch.where(positive, value, 1.0).sqrt(), value * 0.0)


class MeanSquareLoss:
    """Mean squared error over observed targets, in squared normalised units."""

    def mean_square(self, predicted: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean square and the number of observed targets."""
        return masked_mean_square(predicted, batch.y)

    def finish(self, mean_square: torch.Tensor) -> torch.Tensor:
        """Return the mean square itself."""
        return mean_square


class RootMeanSquareLoss(MeanSquareLoss):
    """Root of the mean squared error over observed targets, in normalised units."""

    def finish(self, mean_square: torch.Tensor) -> torch.Tensor:
        """Return the root."""
        return safe_sqrt(mean_square)


class NSELoss(MeanSquareLoss):
    """Basin-averaged NSE*: the mean over observed targets of (ŷ - y)² / (s_b + ε)².

    Parameters
    ----------
    basin_std
        float32 [K, Vy]: s_b, std of each basin's own target over the training period, in *normalised* units: the
        physical std divided by the scale the loader divides that basin's targets by. With ``scope: per_basin`` it is
        1 everywhere, with one scale for all basins a wet basin has more than a dry one. NaN (a basin without training
        values) counts as 1, one normalised unit.
    first_basin
        int64 [D]: where each data set's basins begin in ``basin_std``.
    epsilon
        ε, in normalised units.

    Notes
    -----
    Kratzert et al. average within a basin and then over basins; over shuffled batches this is, as in their code, the
    mean over samples, so a basin counts by its number of windows.
    """

    def __init__(self, basin_std: torch.Tensor, first_basin: torch.Tensor, epsilon: float = NSE_EPSILON) -> None:
        self._weight = (torch.nan_to_num(basin_std, nan=1.0) + epsilon) ** -2
        self._first_basin = first_basin

    def mean_square(self, predicted: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the weighted mean square and the number of observed targets."""
        if self._weight.device != predicted.device:
            self._weight = self._weight.to(predicted.device)
            self._first_basin = self._first_basin.to(predicted.device)
        row = self._first_basin[batch.dataset.long()] + batch.basin.long()
        return masked_mean_square(predicted, batch.y, self._weight[row])


def normalized_basin_std(loader: Loader) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the arguments of :class:`NSELoss` for a loader: float32 [K, Vy] and int64 [D]."""
    num_targets = len(loader.y_names)
    std = [
        own.astype(np.float64) / scale.astype(np.float64)
        for own, scale in zip(loader.y_train_std, loader.y_std, strict=True)
    ]
    flat = np.concatenate([part.reshape(-1, num_targets) for part in std]).astype(np.float32)
    return torch.from_numpy(flat), torch.from_numpy(count_basins(loader.basin_ids)[:-1].copy())


def make_loss(name: LossName, loader: Loader) -> Loss:
    """Return the loss called ``name``, with the basin scales of ``loader`` where it needs them."""
    if name == "nse":
        return NSELoss(*normalized_basin_std(loader))
    return RootMeanSquareLoss() if name == "rmse" else MeanSquareLoss()
