"""Who asks a run to stop does not wait for a batch that does not come, and loses nothing by it."""

import os
import signal
import threading
from itertools import islice

import pytest
import torch

from fake_loader import FakeLoader, synthetic_datasets
from headrace.schemas.train_config import TrainConfig
from headrace.schemas.windows import WindowSpec
from headrace.trainer import interrupt
from headrace.trainer.checkpoint import load_checkpoint
from headrace.trainer.loop import fit
from headrace.trainer.model import build_model
from headrace.trainer.model_config import ModelConfig
from headrace.trainer.run_folder import RunFolder

WINDOW = WindowSpec(hindcast_length=5, forecast_length=1, warmup_length=4)
SETTINGS = TrainConfig(hidden_size=8, train_epochs=2, learning_rate=0.01, dropout=0.3)
TRAIN = {"batch_size": 16, "seed": 5}
VALID = {"batch_size": 32, "shuffle": False}


class SilentAfter(FakeLoader):
    """Serves some batches, then sends Ctrl-C and waits until its iteration is ended."""

    def __init__(self, after, **changes):
        super().__init__(synthetic_datasets(), WINDOW, **changes)
        self._after, self._over = after, threading.Event()

    def __iter__(self):
        yield from islice(super().__iter__(), self._after)
        os.kill(os.getpid(), signal.SIGINT)
        assert self._over.wait(60)
        raise RuntimeError("this iteration is over")

    def end_iteration(self):
        self._over.set()


def loader(**changes):
    return FakeLoader(synthetic_datasets(), WINDOW, **changes)


def trained(folder, train, valid, **changes):
    """Train, and return all weights."""
    config = ModelConfig(num_inputs=2, num_statics=1, hidden_size=8, num_targets=1, dropout=0.3)
    model = build_model(config, seed=3)
    fit(model, train, valid, SETTINGS, folder, seed=1, **changes)
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("passing", ["training", "validation"])
def test_ctrl_c_ends_the_wait_for_a_batch_and_the_run_resumes_bit_for_bit(tmp_path, monkeypatch, passing):
    monkeypatch.setattr(interrupt, "_PATIENCE_SECONDS", 0.0)
    folder = RunFolder.create(tmp_path / "stopped")
    train = SilentAfter(5, **TRAIN) if passing == "training" else loader(**TRAIN)
    valid = SilentAfter(1, **VALID) if passing == "validation" else loader(**VALID)
    with pytest.raises(KeyboardInterrupt):
        trained(folder, train, valid)
    saved = load_checkpoint(folder.last)
    assert (saved.sums.num_batches, saved.epoch_trained) == ((5, False) if passing == "training" else (11, True))
    resumed = trained(folder, loader(**TRAIN), loader(**VALID), resume=True)
    whole = trained(RunFolder.create(tmp_path / "whole"), loader(**TRAIN), loader(**VALID))
    assert torch.equal(resumed, whole)


def test_an_error_of_the_loader_stays_one(tmp_path, monkeypatch):
    monkeypatch.setattr(SilentAfter, "end_iteration", lambda self: None)
    train = SilentAfter(2, **TRAIN)
    train._over.set()
    with pytest.raises(RuntimeError, match="this iteration is over"):
        trained(RunFolder.create(tmp_path / "run"), train, loader(**VALID))
