"""A model of quantiles learns them, and its median is the prediction wherever there is one."""

import numpy as np
import torch
import xarray as xr

from fake_loader import FakeLoader, synthetic_datasets, with_value
from headrace.schemas.train_config import TrainConfig
from headrace.schemas.windows import WindowSpec
from headrace.trainer.evaluate import evaluate
from headrace.trainer.loop import fit
from headrace.trainer.loss import make_loss
from headrace.trainer.model import build_model
from headrace.trainer.model_config import model_config_for
from headrace.trainer.run_folder import RunFolder
from headrace.trainer.time_axis import TimeAxis
from headrace.trainer.validate import validate

WINDOW = WindowSpec(hindcast_length=3, forecast_length=1, warmup_length=3)
SETTINGS = TrainConfig(
    loss="quantile", quantiles=(0.1, 0.5, 0.9), hidden_size=4, dropout=0.0, learning_rate=0.05, train_epochs=12,
    clip_gradient_norm=None,
)  # fmt: skip


def test_the_median_of_each_target_is_evaluated(tmp_path):
    loader = FakeLoader(synthetic_datasets(targets=2), WINDOW, batch_size=50, shuffle=False)
    model = build_model(model_config_for(loader, SETTINGS), seed=0).eval()
    times = {name: TimeAxis(values=np.arange(40), units="days since 2000-01-01") for name in loader.dataset_ids}
    evaluate(model, loader, tmp_path, times=times)
    loader.set_epoch(0)
    batch = next(iter(loader))
    with torch.no_grad():
        raw = model(batch.x, batch.static, 1)
    assert raw.shape == (50, 1, 6)
    expected = loader.denormalize(raw[:, :, [1, 4]], batch)[:, 0].numpy()
    with xr.open_zarr(tmp_path / "predictions.zarr", group="set_a") as ds:
        for v, target in enumerate(loader.y_names):
            found = ds[f"{target}_sim"].values
            at = [(int(b), int(s) + 3) for b, s in zip(batch.basin, batch.start, strict=True)]
            np.testing.assert_allclose([found[place] for place in at], expected[:, v], rtol=1e-6)


def test_validation_scores_the_median_and_counts_every_quantile():
    loader = FakeLoader(synthetic_datasets(basins=(1,), missing=0.0), WINDOW, batch_size=64, shuffle=False)
    model = build_model(model_config_for(loader, SETTINGS), seed=0)
    found = validate(model, loader, make_loss(SETTINGS, loader))
    loader.set_epoch(0)
    batch = next(iter(loader))
    with torch.no_grad():
        raw = model.eval()(batch.x, batch.static, 1).double().numpy()[:, 0]
    y = batch.y.double().numpy()[:, 0, 0]
    short = y[:, None] - raw
    levels = np.array(SETTINGS.quantiles)
    np.testing.assert_allclose(found.loss, np.maximum(levels * short, (levels - 1) * short).mean(), rtol=1e-5)
    np.testing.assert_allclose(found.nse_median, 1 - (short[:, 1] ** 2).sum() / ((y - y.mean()) ** 2).sum(), rtol=1e-5)


def test_the_quantiles_of_pure_noise_are_learnt(tmp_path):
    """Targets without any relation to the inputs: the share of them below each quantile is the quantile."""
    datasets = synthetic_datasets(basins=(4,), steps=150, missing=0.1)
    noise = np.random.default_rng(3).standard_normal(datasets["set_a"].y.shape)
    loader = FakeLoader(with_value(datasets, "set_a", y=noise, x=datasets["set_a"].x * 0), WINDOW, batch_size=128)
    model = build_model(model_config_for(loader, SETTINGS), seed=0)
    fit(model, loader, None, SETTINGS, RunFolder.create(tmp_path / "run"))
    below, seen = np.zeros(3), 0
    loader.set_epoch(0)
    for batch in loader:
        with torch.no_grad():
            predicted = model.eval()(batch.x, batch.static, 1)
        observed = ~torch.isnan(batch.y[..., 0])
        below += (batch.y[observed] < predicted[observed]).sum(0).numpy()
        seen += int(observed.sum())
    np.testing.assert_allclose(below / seen, SETTINGS.quantiles, atol=0.05)
