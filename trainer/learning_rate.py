"""The learning rate as a function of how far a run is, so that nothing of it has to be kept."""

import math

from headrace.schemas.train_config import TrainConfig


def learning_rate_at(settings: TrainConfig, epoch: int, begin: float = 0.0, end: float | None = None) -> float:
    """Return the learning rate of a batch.

    Parameters
    ----------
    settings
        Rates, their schedule, decay and warm-up.
    epoch
        The batch's epoch, counted from 0.
    begin, end
        Shares of the epoch's windows that are done before the batch and after it; ``end`` None is ``begin``.

    Returns
    -------
    float
        With a schedule, the rate of its latest entry at or before the epoch. With cosine decay

            final + (first - final) · (1 + cos(π t / T)) / 2

        with t the epochs, counted in parts, between the end of the warm-up and the batch, and T those to the end of the
        last one. In the warm-up either is multiplied by the part of it that is done after the batch.
    """
    place, warmup = epoch + begin, settings.warmup_epochs
    if settings.learning_rate_decay == "cosine":
        first, final = settings.learning_rate, settings.final_learning_rate
        part = max(place - warmup, 0.0) / (settings.train_epochs - warmup)
        rate = final + (first - final) * (1.0 + math.cos(math.pi * min(part, 1.0))) / 2.0
    else:
        begun = [start for start in settings.learning_rate_schedule if start <= epoch]
        rate = settings.learning_rate_schedule[max(begun)] if begun else settings.learning_rate
    done = epoch + (begin if end is None else end)
    return rate * done / warmup if done < warmup else rate


def changes_by_batch(settings: TrainConfig) -> bool:
    """Return whether batches of one epoch have different learning rates."""
    return settings.learning_rate_decay != "none" or settings.warmup_epochs > 0
