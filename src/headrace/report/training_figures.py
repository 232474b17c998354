"""Figures of a training: loss and score over the epochs, speed, and what the loop waited for."""

import math

import numpy as np

from headrace.report.curves import Series, epoch_plot
from headrace.report.numbers import share, value
from headrace.report.plot import Plot
from headrace.report.run_results import Epochs


def learning_plots(epochs: Epochs, loss_name: str) -> list[Plot]:
    """Return loss, validation score and learning rate, as far as there are any."""
    number = epochs.columns["epoch"]
    losses = [("training", epochs.get("train_loss")), ("validation", epochs.get("valid_loss"))]
    series = [Series(name, values) for name, values in losses if values is not None]
    plots = [epoch_plot("Loss", number, series, f"{loss_name}, normalised units")] if series else []
    if (nse := epochs.get("valid_nse_median")) is not None:
        plots.append(epoch_plot("Validation score", number, [Series("median NSE", nse)], "median NSE over basins"))
    if (rate := epochs.get("learning_rate")) is not None and len(set(rate.tolist())) > 1:
        plots.append(epoch_plot("Learning rate", number, [Series("learning rate", rate)], "", from_zero=True))
    return plots


def speed_plots(epochs: Epochs) -> list[Plot]:
    """Return throughput, and wait and compute per batch, as far as they were measured."""
    number, plots = epochs.columns["epoch"], []
    if (rate := epochs.get("samples_per_second")) is not None:
        plots.append(
            epoch_plot("Throughput", number, [Series("windows", rate)], "windows per second, waiting included",
                       from_zero=True)
        )  # fmt: skip
    parts = [("waiting for data", "data_wait_seconds"), ("computing", "compute_seconds")]
    series = [Series(name, 1000 * found) for name, key in parts if (found := epochs.get(key)) is not None]
    if series:
        plots.append(epoch_plot("Time of a batch", number, series, "milliseconds, mean of a batch", from_zero=True))
    if (busy := epochs.get("gpu_util_percent")) is not None:
        plots.append(epoch_plot("GPU", number, [Series("busy", busy)], "per cent of the time busy", from_zero=True))
    return plots


def wait_words(epochs: Epochs) -> str:
    """Return a sentence on what the loop waited for, and what to do about it."""
    wait, compute = epochs.get("data_wait_seconds"), epochs.get("compute_seconds")
    if wait is None or compute is None:
        return ""
    part = float(np.nansum(wait) / max(np.nansum(wait) + np.nansum(compute), 1e-12))
    head = f"The loop waited for data in {share(part)} of its time"
    if part > 0.5:
        return f"{head}: the loader is the bottleneck. headrace bench says what to change."
    if part > 0.1:
        return f"{head}. More reader threads (loader.num_workers) or a larger loader.memory_budget may help."
    return f"{head}: the model is the bottleneck, not the loader."


def best_epoch(epochs: Epochs) -> tuple[int, str] | None:
    """Return the best epoch, counted from 1, and by which value; None where no epoch is done."""
    for key, name in (("valid_loss", "validation loss"), ("train_loss", "training loss")):
        found = epochs.get(key)
        if found is not None:
            place = int(np.nanargmin(found))
            return int(epochs.columns["epoch"][place]) + 1, f"{name} {value(float(found[place]), 3)}"
    return None


def total_seconds(epochs: Epochs) -> float:
    """Return the seconds of all epochs, NaN where they were not measured."""
    found = epochs.get("seconds")
    return math.nan if found is None else float(np.nansum(found))
