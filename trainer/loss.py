"""Losses on normalised targets that skip what was not observed.

Each is a function of the weighted mean error over the observed targets, so that sums over batches and over ranks give
the loss of the whole exactly. `nse` is the basin-averaged NSE* of Kratzert et al. (2019,
https://doi.org/10.5194/hess-23-5089-2019, equation 8), which weighs every basin alike however much water it carries;
`quantile` is the loss of Koenker and Bassett (1978, https://doi.org/10.2307/1913643).

Letters: B batch, P target steps, Vy targets, Q quantiles, K basins of all data sets in one list.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.train_config import TrainConfig
from headrace.trainer.protocols import Batch, Loader, count_basins

NSE_EPSILON = 0.1
"""Added to a basin's std, in normalised units, so that a nearly dry basin does not outweigh all others."""

ErrorFunction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Predictions [B, P, Vy] (or [B, P, Vy × Q]) and targets without NaN [B, P, Vy] → errors [B, P, Vy]."""


class Loss:
    """Weighted mean of an error over the observed targets, or its root.

    Parameters
    ----------
    error
        Error of each target.
    target_weight
        float64 [Vy]: an observed target counts this much; None counts every one as 1.
    basin_weight
        None, or a factor for each basin's errors.
    root
        Whether the loss is the root of the mean.
    """

    def __init__(
        self,
        error: ErrorFunction,
        *,
        target_weight: torch.Tensor | None = None,
        basin_weight: "BasinWeight | None" = None,
        root: bool = False,
    ) -> None:
        self._error = error
        self._target_weight = target_weight
        self._basin_weight = basin_weight
        self._root = root

    def add_up(self, predicted: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a batch's sum of errors and the weight of its observed targets; the loss is of their ratio.

        Parameters
        ----------
        predicted
            float [B, P, Vy], or [B, P, Vy × Q], normalised.
        batch
            Its ``y`` is float32 [B, P, Vy], NaN = missing.

        Returns
        -------
        error : torch.Tensor
            float32 [], 0 with a zero gradient when nothing was observed.
        weight : torch.Tensor
            float64 [], the number of observed targets, each times its target's weight.
        """
        observed = ~torch.isnan(batch.y)
        # NaN is replaced before it meets a prediction, so that it reaches neither the sum nor a gradient.
        errors = self._error(predicted.float(), torch.where(observed, batch.y, 0.0))
        errors = torch.where(observed, errors, 0.0)
        if self._basin_weight is not None:
            errors = errors * self._basin_weight.of(batch)[:, None, :]
        if self._target_weight is None:
            return errors.sum(), observed.sum().double()
        weight = self._target_weight = self._target_weight.to(predicted.device)
        return (errors * weight.float()).sum(), (observed.sum((0, 1)) * weight).sum()

    def finish(self, mean: torch.Tensor) -> torch.Tensor:
        """Return the loss of a mean error."""
        return safe_sqrt(mean) if self._root else mean


def mean_of(error: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the mean error of sums as :meth:`Loss.add_up` returns them, in the type of ``error``; 0 without weight."""
    return error / torch.where(weight > 0, weight, 1.0).to(error.dtype)


def safe_sqrt(value: torch.Tensor) -> torch.Tensor:
    """Return the square root, with gradient 0 instead of infinity where ``value`` is 0."""
    positive = value > 0
    return torch.where(positive, torch.where(positive, value, 1.0).sqrt(), value * 0.0)


def square_error(predicted: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return (ŷ - y)²."""
    return (predicted - y).square()


def absolute_error(predicted: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return abs(ŷ - y)."""
    return (predicted - y).abs()


def quantile_error(predicted: torch.Tensor, y: torch.Tensor, quantiles: Sequence[float]) -> torch.Tensor:
    """Return the mean over quantiles τ of max(τ (y - ŷ_τ), (τ - 1) (y - ŷ_τ)).

    Parameters
    ----------
    predicted
        float32 [B, P, Vy × Q], the quantiles of the first target first.
    y
        float32 [B, P, Vy].
    quantiles
        Q numbers between 0 and 1.

    Returns
    -------
    torch.Tensor
        float32 [B, P, Vy].
    """
    levels = torch.tensor(quantiles, dtype=predicted.dtype, device=predicted.device)
    short = y[..., None] - predicted.reshape(*y.shape, len(quantiles))
    return torch.maximum(levels * short, (levels - 1.0) * short).mean(-1)


class BasinWeight:
    """1 / (s_b + ε)² of each window's basin b, which makes a mean square error the basin-averaged NSE*.

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

    def of(self, batch: Batch) -> torch.Tensor:
        """Return float32 [B, Vy]."""
        device = batch.y.device
        if self._weight.device != device:
            self._weight, self._first_basin = self._weight.to(device), self._first_basin.to(device)
        return self._weight[self._first_basin[batch.dataset.long()] + batch.basin.long()]


def normalized_basin_std(loader: Loader) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the arguments of :class:`BasinWeight` for a loader: float32 [K, Vy] and int64 [D]."""
    num_targets = len(loader.y_names)
    std = [
        own.astype(np.float64) / scale.astype(np.float64)
        for own, scale in zip(loader.y_train_std, loader.y_std, strict=True)
    ]
    flat = np.concatenate([part.reshape(-1, num_targets) for part in std]).astype(np.float32)
    return torch.from_numpy(flat), torch.from_numpy(count_basins(loader.basin_ids)[:-1].copy())


def make_loss(settings: TrainConfig, loader: Loader) -> Loss:
    """Return the configured loss, with the basin scales of ``loader`` where it needs them.

    Raises
    ------
    ConfigError
        ``target_weights`` names a target that the loader does not serve.
    """
    weight = _target_weight(settings.target_weights, loader)
    if settings.loss == "nse":
        return Loss(square_error, target_weight=weight, basin_weight=BasinWeight(*normalized_basin_std(loader)))
    if settings.loss == "quantile":
        return Loss(partial(quantile_error, quantiles=settings.quantiles), target_weight=weight)
    error = absolute_error if settings.loss == "mae" else square_error
    return Loss(error, target_weight=weight, root=settings.loss == "rmse")


def _target_weight(weights: Mapping[str, float], loader: Loader) -> torch.Tensor | None:
    """Return float64 [Vy], or None where every target counts as 1."""
    unknown = [name for name in weights if name not in loader.y_names]
    if unknown:
        raise ConfigError(
            describe(
                "a weight is given to what is no target",
                where="train.target_weights",
                expected=f"some of {', '.join(loader.y_names)}",
                got=", ".join(unknown),
                fix="correct the names; they are those under variables.target",
            )
        )
    if all(value == 1 for value in weights.values()):
        return None
    return torch.tensor([weights.get(name, 1.0) for name in loader.y_names], dtype=torch.float64)
