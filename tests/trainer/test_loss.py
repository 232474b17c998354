"""Losses equal a slow loop, and missing targets are nothing at all."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_loader import FakeBatch, FakeLoader, synthetic_datasets, with_value
from headrace.schemas.errors import ConfigError
from headrace.schemas.train_config import TrainConfig
from headrace.schemas.windows import WindowSpec
from headrace.trainer.loss import NSE_EPSILON, make_loss, mean_of

WINDOW = WindowSpec(hindcast_length=5, forecast_length=1, warmup_length=3)
NAMES = ("nse", "rmse", "mse", "mae", "quantile")
QUANTILES = (0.1, 0.5, 0.9)


@pytest.fixture
def loader():
    return FakeLoader(synthetic_datasets(targets=2, missing=0.3), WINDOW, batch_size=7)


def loss_of(name, loader, **changes):
    levels = {"quantiles": QUANTILES} if name == "quantile" else {}
    return make_loss(TrainConfig(loss=name, **levels, **changes), loader)


def prediction_for(name, batch, seed=1):
    shape = (*batch.y.shape[:2], batch.y.shape[2] * (len(QUANTILES) if name == "quantile" else 1))
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def value_of(loss, predicted, batch):
    return loss.finish(mean_of(*loss.add_up(predicted, batch)))


def slow_error(name, predicted, y):
    """Error of one target; ``predicted`` holds one number, or one for each quantile."""
    if name == "quantile":
        short = [y - q for q in predicted]
        return np.mean([level * s if s >= 0 else (level - 1) * s for level, s in zip(QUANTILES, short, strict=True)])
    return abs(predicted[0] - y) if name == "mae" else (predicted[0] - y) ** 2


def slow_loss(name, predicted, batch, loader, weights):
    total, weight_sum = 0.0, 0.0
    each = len(QUANTILES) if name == "quantile" else 1
    for i in range(len(batch.y)):
        d, b = int(batch.dataset[i]), int(batch.basin[i])
        for p in range(batch.y.shape[1]):
            for v in range(batch.y.shape[2]):
                y = float(batch.y[i, p, v])
                if np.isnan(y):
                    continue
                std = loader.y_train_std[d][b, v] / float(loader.y_std[d][b, v])
                weight = weights[v] / (std + NSE_EPSILON) ** 2 if name == "nse" else weights[v]
                own = [float(value) for value in predicted[i, p, v * each : (v + 1) * each]]
                total += weight * slow_error(name, own, y)
                weight_sum += weights[v]
    return np.sqrt(total / weight_sum) if name == "rmse" else total / weight_sum


@pytest.mark.parametrize("weights", [{}, {"streamflow": 3.0, "stage": 0.25}])
@pytest.mark.parametrize("name", NAMES)
def test_loss_equals_a_slow_loop(name, weights, loader):
    loss = loss_of(name, loader, target_weights=weights)
    for batch in loader:
        predicted = prediction_for(name, batch).detach()
        expected = slow_loss(name, predicted, batch, loader, [weights.get(v, 1.0) for v in loader.y_names])
        assert float(value_of(loss, predicted, batch)) == pytest.approx(expected, rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 2)),
    seed=st.integers(0, 2**16),
    missing=st.floats(0, 1),
    weight=st.sampled_from([None, 0.5, 7.0]),
)
def test_any_batch_has_the_loss_of_a_slow_loop_and_finite_gradients(name, shape, seed, missing, weight):
    loader = FakeLoader(synthetic_datasets(targets=shape[2]), WINDOW)
    generator = np.random.default_rng(seed)
    y = generator.standard_normal(shape) * 10.0 ** generator.integers(-3, 4)
    y[generator.random(shape) < missing] = np.nan
    dataset = torch.from_numpy(generator.integers(0, 2, shape[0]).astype(np.int32))
    batch = FakeBatch(
        x=torch.zeros(shape[0], 6, 2), static=torch.zeros(shape[0], 1), y=torch.from_numpy(y).float(), dataset=dataset,
        basin=torch.from_numpy(generator.integers(0, 2, shape[0]).astype(np.int32)), start=dataset,
    )  # fmt: skip
    weights = {} if weight is None else {"streamflow": weight}
    loss = loss_of(name, loader, target_weights=weights)
    predicted = prediction_for(name, batch, seed)
    value = value_of(loss, predicted, batch)
    value.backward()
    assert torch.isfinite(predicted.grad).all()
    missed = torch.isnan(batch.y).repeat_interleave(predicted.shape[2] // shape[2], dim=2)
    assert (predicted.grad[missed] == 0).all()
    if missed.all():
        assert value.item() == 0.0
    else:
        expected = slow_loss(name, predicted.detach(), batch, loader, [weight or 1.0, 1.0])
        assert value.item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_observed_has_a_gradient_and_what_is_missing_none(name, loader):
    batch = next(iter(loader))
    predicted = prediction_for(name, batch)
    value_of(loss_of(name, loader), predicted, batch).backward()
    missing = torch.isnan(batch.y).repeat_interleave(predicted.shape[2] // 2, dim=2)
    assert missing.any()
    assert (predicted.grad[missing] == 0).all()
    assert (predicted.grad[~missing] != 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("windows", [7, 0])
def test_a_batch_with_nothing_observed_has_loss_and_gradient_zero(name, windows, loader):
    """Of 0 windows too: a rank may get an empty share of the last batch."""
    first = next(iter(loader))
    batch = FakeBatch(**{n: v[:windows] for n, v in {**vars(first), "y": torch.full_like(first.y, torch.nan)}.items()})
    predicted = prediction_for(name, batch)
    value = value_of(loss_of(name, loader, target_weights={"stage": 2.0}), predicted, batch)
    value.backward()
    assert value.item() == 0.0
    assert (predicted.grad == 0).all()


def test_rmse_of_a_perfect_prediction_has_gradient_zero(loader):
    batch = next(iter(loader))
    predicted = torch.nan_to_num(batch.y).requires_grad_()
    value_of(loss_of("rmse", loader), predicted, batch).backward()
    assert (predicted.grad == 0).all()


def test_the_quantile_loss_is_least_at_the_quantiles():
    """A property of the loss of Koenker and Bassett: constants that minimise it are quantiles of the targets."""
    loader = FakeLoader(synthetic_datasets(basins=(1,)), WINDOW)
    y = torch.sort(torch.randn(999, generator=torch.Generator().manual_seed(0))).values.reshape(-1, 1, 1)
    zeros = torch.zeros(999, dtype=torch.int32)
    batch = FakeBatch(x=torch.zeros(999, 1, 2), static=torch.zeros(999, 1), y=y, dataset=zeros, basin=zeros,
                      start=zeros)  # fmt: skip
    loss = loss_of("quantile", loader)
    at = torch.tensor([y[int(999 * q)].item() for q in QUANTILES])

    def value(constants):
        return float(value_of(loss, constants.expand(999, 1, 3), batch))

    for k in range(3):
        moved = torch.zeros(3).index_fill(0, torch.tensor(k), 0.1)
        assert value(at) < min(value(at + moved), value(at - moved))


def test_all_weights_scaled_alike_change_nothing(loader):
    batch = next(iter(loader))
    predicted = prediction_for("mse", batch).detach()
    weights = {"streamflow": 2.0, "stage": 0.5}
    one, other = (
        value_of(loss_of("mse", loader, target_weights={k: v * by for k, v in weights.items()}), predicted, batch)
        for by in (1.0, 64.0)
    )
    assert float(one) == pytest.approx(float(other), rel=1e-6)


def test_a_weight_of_what_is_no_target_is_refused(loader):
    with pytest.raises(ConfigError, match=r"(?s)no target.*train\.target_weights.*streamflow, stage.*rain"):
        loss_of("mse", loader, target_weights={"rain": 1.0})


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
    value = value_of(loss_of("nse", loader), torch.ones(1, 3, 1), batch)
    assert float(value) == pytest.approx(1 / (1 + NSE_EPSILON) ** 2)
