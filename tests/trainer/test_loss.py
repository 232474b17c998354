"""Losses equal a slow loop, and missing targets are nothing at all."""

import numpy as np
import pytest
import torch

from fake_loader import FakeBatch, FakeLoader, synthetic_datasets, with_value
from headrace.schemas.windows import WindowSpec
from headrace.trainer.loss import NSE_EPSILON, make_loss

WINDOW = WindowSpec(hindcast_length=5, forecast_length=1, warmup_length=3)


@pytest.fixture
def loader():
    return FakeLoader(synthetic_datasets(targets=2, missing=0.3), WINDOW, batch_size=7)


def prediction_for(batch):
    return torch.randn(batch.y.shape, generator=torch.Generator().manual_seed(1)).requires_grad_()


def slow_loss(name, predicted, batch, loader):
    total, count = 0.0, 0
    for i in range(len(batch.y)):
        d, b = int(batch.dataset[i]), int(batch.basin[i])
        for p in range(batch.y.shape[1]):
            for v in range(batch.y.shape[2]):
                y = float(batch.y[i, p, v])
                if np.isnan(y):
                    continue
                std = loader.y_train_std[d][b, v] / float(loader.y_std[d][b, v])
                weight = 1 / (std + NSE_EPSILON) ** 2 if name == "nse" else 1.0
                total += weight * (float(predicted[i, p, v]) - y) ** 2
                count += 1
    return np.sqrt(total / count) if name == "rmse" else total / count


@pytest.mark.parametrize("name", ["nse", "rmse", "mse"])
def test_loss_equals_a_slow_loop(name, loader):
    loss = make_loss(name, loader)
    for batch in loader:
        predicted = prediction_for(batch).detach()
        mean_square, count = loss.mean_square(predicted, batch)
        assert int(count) == int((~torch.isnan(batch.y)).sum())
        assert float(loss.finish(mean_square)) == pytest.approx(slow_loss(name, predicted, batch, loader), rel=1e-5)


@pytest.mark.parametrize("name", ["nse", "rmse", "mse"])
def test_missing_targets_have_no_gradient(name, loader):
    batch = next(iter(loader))
    loss = make_loss(name, loader)
    predicted = prediction_for(batch)
    loss.finish(loss.mean_square(predicted, batch)[0]).backward()
    missing = torch.isnan(batch.y)
    assert missing.any()
    assert (predicted.grad[missing] == 0).all()
    assert (predicted.grad[~missing] != 0).all()


@pytest.mark.parametrize("name", ["nse", "rmse", "mse"])
def test_a_batch_with_nothing_observed_has_loss_and_gradient_zero(name, loader):
    first = next(iter(loader))
    batch = FakeBatch(**{**vars(first), "y": torch.full_like(first.y, torch.nan)})
    loss = make_loss(name, loader)
    predicted = prediction_for(batch)
    value = loss.finish(loss.mean_square(predicted, batch)[0])
    value.backward()
    assert value.item() == 0.0
    assert (predicted.grad == 0).all()


def test_rmse_of_a_perfect_prediction_has_gradient_zero(loader):
    batch = next(iter(loader))
    predicted = torch.nan_to_num(batch.y).requires_grad_()
    loss = make_loss("rmse", loader)
    loss.finish(loss.mean_square(predicted, batch)[0]).backward()
    assert (predicted.grad == 0).all()


def test_a_basin_without_training_values_counts_as_one_normalised_unit():
    datasets = synthetic_datasets(basins=(2,), missing=0.0)
    y = datasets["set_a"].y.copy()
    y[1] = np.nan
    loader = FakeLoader(with_value(datasets, "set_a", y=y), WINDOW)
    assert np.isnan(loader.y_train_std[0][1, 0])
    batch = FakeBatch(
        x=torch.zeros(1, 6, 2), static=torch.zeros(1, 1), y=torch.zeros(1, 3, 1),
        dataset=torch.zeros(1, dtype=torch.int32), basin=torch.ones(1, dtype=torch.int32),
        start=torch.zeros(1, dtype=torch.int32),
    )  # fmt: skip
    mean_square, _ = make_loss("nse", loader).mean_square(torch.ones(1, 3, 1), batch)
    assert float(mean_square) == pytest.approx(1 / (1 + NSE_EPSILON) ** 2)
