"""Each precision is the one asked for, or refused with what to do; float16 scales its loss and comes back with it."""

import pytest
import torch

from fake_loader import FakeLoader, synthetic_datasets
from headrace.schemas.errors import ConfigError
from headrace.schemas.train_config import TrainConfig
from headrace.schemas.windows import WindowSpec
from headrace.trainer.checkpoint import load_checkpoint
from headrace.trainer.loop import fit
from headrace.trainer.loss_meter import NonFiniteLossError
from headrace.trainer.model import build_model
from headrace.trainer.model_config import ModelConfig, model_config_for
from headrace.trainer.precision import choose_precision
from headrace.trainer.run_folder import RunFolder
from headrace.trainer.training_step import LEAST_SCALE, fresh_step

WINDOW = WindowSpec(hindcast_length=5, forecast_length=1, warmup_length=4)


def loader():
    return FakeLoader(synthetic_datasets(), WINDOW, batch_size=32, seed=5)


def settings(**changes):
    return TrainConfig(**{"hidden_size": 8, "train_epochs": 1, "dropout": 0.0, "device": "cpu", **changes})


def shape_of(config):
    return model_config_for(loader(), config)


@pytest.mark.parametrize("model", ["lstm", "ea_lstm"])
@pytest.mark.parametrize(("amp", "dtype"), [(False, None), (True, torch.bfloat16), ("bf16", torch.bfloat16)])
def test_a_name_means_a_format(model, amp, dtype):
    config = settings(amp=amp, model=model)
    precision = choose_precision(config, shape_of(config), "cpu")
    assert precision.dtype is dtype
    assert not precision.scaler().is_enabled()
    with precision.autocast():
        assert torch.nn.functional.linear(torch.ones(1, 2), torch.ones(1, 2)).dtype is (dtype or torch.float32)


def test_what_torch_lacks_is_refused_with_what_to_do():
    """torch has no LSTM in float16 on the CPU; if one day it has, the run must work instead."""
    config = settings(amp="fp16")
    try:
        with torch.autocast("cpu", dtype=torch.float16):
            torch.nn.LSTM(2, 2)(torch.zeros(2, 1, 2))
    except RuntimeError:
        with pytest.raises(ConfigError, match=r"(?s)float16 here.*train\.amp: fp16, on cpu.*use --amp \(bfloat16\)"):
            choose_precision(config, shape_of(config), "cpu")
    else:
        assert choose_precision(config, shape_of(config), "cpu").dtype is torch.float16


@pytest.mark.parametrize("amp", [False, True, "fp16"])
def test_training_keeps_float32_weights_and_nearly_the_same_loss(tmp_path, amp):
    config = settings(amp=amp, model="ea_lstm")
    losses = []
    for name, each in (("this", config), ("float32", settings(model="ea_lstm"))):
        model = build_model(shape_of(each), seed=3)
        losses.append(fit(model, loader(), None, each, RunFolder.create(tmp_path / name)).best_loss)
        assert all(p.dtype == torch.float32 for p in model.parameters())
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert (losses[0] == losses[1]) is (amp is False), "a lower precision rounds"


@pytest.mark.parametrize("model", ["lstm", "ea_lstm"])
def test_predictions_have_more_digits_than_the_format(model):
    config = settings(amp=True, model=model)
    batch = next(iter(loader()))
    with choose_precision(config, shape_of(config), "cpu").autocast():
        predicted = build_model(shape_of(config), seed=3)(batch.x, batch.static)
    assert predicted.dtype is torch.float32
    assert (predicted != predicted.bfloat16().float()).float().mean() > 0.9


def test_float16_scales_the_loss_and_goes_on_with_the_scale(tmp_path):
    scalers = []
    for name, stops in (("whole", [2]), ("stopped", [1, 2])):
        folder = RunFolder.create(tmp_path / name)
        for turn, epochs in enumerate(stops):
            config = settings(amp="fp16", model="ea_lstm", train_epochs=epochs)
            fit(build_model(shape_of(config), seed=3), loader(), None, config, folder, resume=turn > 0)
        scalers.append(load_checkpoint(folder.last).scaler)
    assert scalers[0] == scalers[1]
    assert scalers[0]["scale"] in {2.0**power for power in range(10, 17)}
    assert scalers[0]["_growth_tracker"] > 0


def test_a_gradient_that_overflows_leaves_out_the_step_and_lowers_the_scale():
    step = fresh_step(loader(), settings(amp="fp16", model="ea_lstm"), "cpu", seed=0)
    batch = next(iter(loader()))
    step.scaler.load_state_dict({**step.scaler.state_dict(), "scale": 2.0**126})
    before = torch.cat([p.detach().flatten().clone() for p in step.model.parameters()])
    step(batch)
    assert torch.equal(before, torch.cat([p.detach().flatten() for p in step.model.parameters()]))
    assert step.scaler.get_scale() == 2.0**125
    step.check_scale("here")
    step.scaler.load_state_dict({**step.scaler.state_dict(), "scale": LEAST_SCALE / 2})
    step(batch)
    with pytest.raises(NonFiniteLossError, match=r"(?s)overflow in float16.*here.*--amp \(bfloat16\)"):
        step.check_scale("here")


def test_a_gpu_without_bfloat16_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda: False)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: "Old Card")
    shape = ModelConfig(num_inputs=1, num_statics=0, hidden_size=2, num_targets=1, dropout=0.0)
    with pytest.raises(ConfigError, match=r"(?s)Old Card without bfloat16.*use --no-amp"):
        choose_precision(settings(amp=True), shape, "cuda")
