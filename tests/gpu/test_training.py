"""Training on a GPU: every model in every precision gives nearly the CPU's loss, and stops and goes on."""

import pytest
import torch

from fake_loader import FakeLoader, synthetic_datasets
from headrace.schemas.train_config import TrainConfig
from headrace.schemas.windows import WindowSpec
from headrace.trainer.checkpoint import load_checkpoint
from headrace.trainer.loop import fit
from headrace.trainer.model import build_model
from headrace.trainer.model_config import model_config_for
from headrace.trainer.protocols import Silent
from headrace.trainer.run_folder import RunFolder

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU and a build of torch that uses it"),
]

WINDOW = WindowSpec(hindcast_length=20, forecast_length=1, warmup_length=19)


def loaders():
    train = FakeLoader(synthetic_datasets(), WINDOW, batch_size=16, seed=5)
    return train, FakeLoader(synthetic_datasets(seed=9), WINDOW, batch_size=32, shuffle=False)


def trained(folder, settings, device, *, progress=None, resume=False):
    train, valid = loaders()
    model = build_model(model_config_for(train, settings), seed=3).to(device)
    return fit(model, train, valid, settings, folder, progress, resume=resume), model


@pytest.mark.parametrize("amp", [False, "bf16", "fp16"])
@pytest.mark.parametrize("kind", ["lstm", "ea_lstm"])
def test_the_loss_is_nearly_the_cpus(tmp_path, kind, amp):
    config = TrainConfig(model=kind, amp=amp, hidden_size=16, dropout=0.0, train_epochs=2)
    on_gpu, model = trained(RunFolder.create(tmp_path / "gpu"), config, "cuda")
    on_cpu, _ = trained(RunFolder.create(tmp_path / "cpu"), config.model_copy(update={"amp": False}), "cpu")
    assert on_gpu.best_loss == pytest.approx(on_cpu.best_loss, rel=0.02 if amp else 1e-3)
    assert all(p.dtype == torch.float32 for p in model.parameters())


class StopAt(Silent):
    """Raises after some updates."""

    def __init__(self, updates):
        self.left = updates

    def update(self, done, *, loss, samples_per_second, wait_share):
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("stopped")


@pytest.mark.parametrize("amp", [False, "fp16"])
def test_a_stopped_run_goes_on_with_dropout_and_scale(tmp_path, amp):
    config = TrainConfig(amp=amp, hidden_size=16, dropout=0.4, train_epochs=2, checkpoint_seconds=1e-9)
    whole, _ = trained(RunFolder.create(tmp_path / "whole"), config, "cuda")
    folder = RunFolder.create(tmp_path / "stopped")
    with pytest.raises(RuntimeError, match="stopped"):
        trained(folder, config, "cuda", progress=StopAt(4))
    resumed, _ = trained(folder, config, "cuda", resume=True)
    assert resumed.best_loss == pytest.approx(whole.best_loss, rel=1e-4)
    scalers = [load_checkpoint(tmp_path / name / "checkpoints" / "last.pt").scaler for name in ("whole", "stopped")]
    assert scalers[0] == scalers[1]
