"""Training learns, stops and resumes exactly, and says what went wrong."""

import os
import signal

import numpy as np
import pytest
import torch

from fake_loader import FakeLoader, synthetic_datasets, with_value
from headrace.schemas.errors import ConfigError, StaleIndexError
from headrace.schemas.train_config import TrainConfig
from headrace.schemas.windows import WindowSpec
from headrace.trainer.checkpoint import CheckpointError, load_checkpoint
from headrace.trainer.device import DeviceMemoryError
from headrace.trainer.loop import fit
from headrace.trainer.loss_meter import NonFiniteLossError
from headrace.trainer.model import build_model
from headrace.trainer.model_config import ModelConfig
from headrace.trainer.protocols import Silent
from headrace.trainer.run_folder import RunFolder, read_csv

WINDOW = WindowSpec(hindcast_length=5, forecast_length=1, warmup_length=4)


def settings(**changes):
    return TrainConfig(**{"hidden_size": 8, "train_epochs": 3, "learning_rate": 0.01, "dropout": 0.3, **changes})


def model_for(loader, hidden_size=8, dropout=0.3):
    config = ModelConfig(
        num_inputs=len(loader.x_names),
        num_statics=len(loader.static_names),
        hidden_size=hidden_size,
        num_targets=len(loader.y_names),
        dropout=dropout,
    )
    return build_model(config, seed=3)


def train_loader(**changes):
    return FakeLoader(synthetic_datasets(), WINDOW, **{"batch_size": 16, "seed": 5, **changes})


def valid_loader():
    return FakeLoader(synthetic_datasets(seed=9), WINDOW, batch_size=32, shuffle=False)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


class StopAt(Silent):
    """Raises, or sends Ctrl-C or another signal, after some updates."""

    def __init__(self, updates, error=None, signum=signal.SIGINT):
        self.left, self.error, self.signum = updates, error, signum

    def update(self, done, *, loss, samples_per_second, wait_share):
        self.left -= 1
        if self.left == 0:
            if self.error is not None:
                raise self.error
            os.kill(os.getpid(), self.signum)


class Killed(Exception):
    """Stands in for kill -9: nothing is written after it."""


def uninterrupted(tmp_path, **changes):
    loader = train_loader()
    model = model_for(loader)
    folder = RunFolder.create(tmp_path / "whole")
    fit(model, loader, valid_loader(), settings(**changes), folder, seed=1)
    return weights(model), read_csv(folder.metrics)


TIMES = ("samples_per_second", "data_wait_seconds", "compute_seconds", "seconds")


def without_times(rows):
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def test_the_model_learns_a_simple_function(tmp_path):
    datasets = synthetic_datasets(basins=(4,), steps=60, missing=0.2)
    loader = FakeLoader(datasets, WINDOW, batch_size=32)
    model = model_for(loader, hidden_size=16, dropout=0.0)
    checked = FakeLoader(datasets, WINDOW, batch_size=64, shuffle=False)
    result = fit(
        model, loader, checked, settings(train_epochs=30, learning_rate=0.02), RunFolder.create(tmp_path / "run")
    )
    rows = read_csv(tmp_path / "run" / "metrics.csv")
    assert result.num_epochs == len(rows) == 30
    assert float(rows[-1]["train_loss"]) < 0.1 * float(rows[0]["train_loss"])
    assert float(rows[-1]["valid_nse_median"]) > 0.9
    assert result.best_loss == min(float(row["valid_loss"]) for row in rows)
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "best.pt").best_epoch == result.best_epoch


@pytest.mark.parametrize("loss", ["nse", "rmse"])
def test_one_constant_target_is_learnt(tmp_path, loss):
    datasets = synthetic_datasets(basins=(2,), missing=0.0)
    y = np.full_like(datasets["set_a"].y, 2.0)
    loader = FakeLoader(with_value(datasets, "set_a", y=y), WINDOW, scale=False)
    model = model_for(loader, dropout=0.0)
    checked = FakeLoader(with_value(datasets, "set_a", y=y), WINDOW, batch_size=64, shuffle=False, scale=False)
    fit(model, loader, checked, settings(train_epochs=20, loss=loss), RunFolder.create(tmp_path / "run"))
    rows = read_csv(tmp_path / "run" / "metrics.csv")
    assert all(row["valid_loss"] and row["valid_nse_median"] == "" for row in rows)  # no NSE of what never varies
    batch = next(iter(loader))
    with torch.no_grad():
        assert model(batch.x, batch.static).sub(2.0).abs().max() < 0.2


@pytest.mark.parametrize("killed_after", [1, 4, 11, 12, 13, 20, 30])
def test_a_killed_run_resumes_in_the_middle_of_an_epoch_bit_for_bit(tmp_path, killed_after):
    expected, expected_rows = uninterrupted(tmp_path)
    folder = RunFolder.create(tmp_path / "killed")
    loader = train_loader()
    with pytest.raises(Killed):
        fit(model_for(loader), loader, valid_loader(), settings(), folder,
            StopAt(killed_after, Killed()), seed=1, checkpoint_batches=3)  # fmt: skip
    resumed_loader = train_loader()
    model = model_for(resumed_loader)
    torch.manual_seed(99)
    fit(model, resumed_loader, valid_loader(), settings(), RunFolder.open(folder.path), seed=1, resume=True)
    assert torch.equal(weights(model), expected)
    assert without_times(read_csv(folder.metrics)) == without_times(expected_rows)


@pytest.mark.parametrize("stopped_after", [1, 5, 11, 13, 14, 25])
def test_ctrl_c_saves_where_it_is_and_resumes_bit_for_bit(tmp_path, stopped_after):
    expected, expected_rows = uninterrupted(tmp_path)
    folder = RunFolder.create(tmp_path / "stopped")
    loader = train_loader()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        fit(model_for(loader), loader, valid_loader(), settings(), folder, StopAt(stopped_after), seed=1)
    assert signal.getsignal(signal.SIGINT) is before
    assert len(loader) == 11
    saved = load_checkpoint(folder.last)
    if stopped_after <= 11:
        assert (saved.epoch, saved.sums.num_batches) == (0, stopped_after)
    resumed_loader = train_loader()
    model = model_for(resumed_loader)
    fit(model, resumed_loader, valid_loader(), settings(), folder, seed=1, resume=True)
    assert torch.equal(weights(model), expected)
    assert without_times(read_csv(folder.metrics)) == without_times(expected_rows)


def test_sigterm_of_a_job_scheduler_saves_like_ctrl_c(tmp_path):
    expected, expected_rows = uninterrupted(tmp_path)
    folder = RunFolder.create(tmp_path / "stopped")
    loader = train_loader()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        fit(model_for(loader), loader, valid_loader(), settings(), folder, StopAt(5, signum=signal.SIGTERM), seed=1)
    assert signal.getsignal(signal.SIGTERM) is before
    assert load_checkpoint(folder.last).sums.num_batches == 5
    resumed_loader = train_loader()
    model = model_for(resumed_loader)
    fit(model, resumed_loader, valid_loader(), settings(), folder, seed=1, resume=True)
    assert torch.equal(weights(model), expected)
    assert without_times(read_csv(folder.metrics)) == without_times(expected_rows)


def test_a_row_written_before_the_kill_is_replaced_not_repeated(tmp_path, monkeypatch):
    folder = RunFolder.create(tmp_path / "run")
    loader = train_loader()

    def no_disk(*arguments):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("headrace.trainer.training_state.TrainingState.close_epoch", no_disk)
        with pytest.raises(Killed):
            fit(model_for(loader), loader, None, settings(), folder, checkpoint_batches=4)
    assert [row["epoch"] for row in read_csv(folder.metrics)] == ["0"]
    loader = train_loader()
    fit(model_for(loader), loader, None, settings(), folder, resume=True)
    assert [row["epoch"] for row in read_csv(folder.metrics)] == ["0", "1", "2"]


def test_a_finished_run_resumes_to_nothing_and_goes_on_with_more_epochs(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    loader = train_loader()
    fit(model_for(loader), loader, None, settings(train_epochs=1), folder)
    model = model_for(loader)
    assert fit(model, loader, None, settings(train_epochs=1), folder, resume=True).num_epochs == 1
    assert fit(model, loader, None, settings(train_epochs=2), folder, resume=True).num_epochs == 2
    assert len(read_csv(folder.metrics)) == 2


def test_early_stopping_ends_the_run_and_stays_ended(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    loader = train_loader()
    model = model_for(loader)
    patient = settings(train_epochs=50, early_stopping_epochs=2, learning_rate=1e-12)
    # At this rate only dropout moves the loss, so it soon fails to fall.
    result = fit(model, loader, None, patient, folder)
    assert result.stopped_early
    assert result.num_epochs == result.best_epoch + 3
    assert fit(model, loader, None, patient, folder, resume=True) == result


def test_an_input_that_is_not_finite_is_named_and_never_reaches_the_weights(tmp_path):
    datasets = synthetic_datasets()
    x = datasets["set_b"].x.copy()
    x[1, 20] = np.inf
    loader = FakeLoader(with_value(datasets, "set_b", x=x), WINDOW, batch_size=16)
    model = model_for(loader)
    with pytest.raises(NonFiniteLossError, match=r"set_b/set_b_01 \(start \d+\)") as caught:
        fit(model, loader, None, settings(), RunFolder.create(tmp_path / "run"))
    assert "epoch 1/3, training, batch" in str(caught.value)
    assert "set_a" not in str(caught.value)
    assert torch.isfinite(weights(model)).all()


def test_diverged_weights_are_told_from_bad_data(tmp_path):
    loader = train_loader()
    model = model_for(loader)
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    with pytest.raises(NonFiniteLossError, match=r"new run with a lower train\.learning_rate"):
        fit(model, loader, None, settings(), RunFolder.create(tmp_path / "run"))


def test_a_full_gpu_is_said_with_what_to_change(tmp_path, monkeypatch):
    loader = train_loader()
    model = model_for(loader)

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nMore.")

    monkeypatch.setattr(model, "hidden", full)
    with pytest.raises(DeviceMemoryError, match=r"(?s)training.*allocate 20\.00 GiB.*--batch-size"):
        fit(model, loader, None, settings(), RunFolder.create(tmp_path / "run"))


def test_a_validation_loss_that_is_not_finite_is_named(tmp_path):
    datasets = synthetic_datasets()
    x = datasets["set_a"].x.copy()
    x[0, 3] = np.nan
    bad = FakeLoader(with_value(datasets, "set_a", x=x), WINDOW, batch_size=16, shuffle=False)
    loader = train_loader()
    with pytest.raises(NonFiniteLossError, match="epoch 1/3, validation, batch 0"):
        fit(model_for(loader), loader, bad, settings(), RunFolder.create(tmp_path / "run"))


def test_a_split_without_any_observed_target_is_refused(tmp_path):
    datasets = synthetic_datasets(basins=(2,), missing=0.0)
    loader = FakeLoader(datasets, WINDOW, batch_size=16)
    for data in datasets.values():
        data.y[:] = np.nan
    with pytest.raises(ConfigError, match="no target was observed"):
        fit(model_for(loader), loader, None, settings(), RunFolder.create(tmp_path / "run"))


def test_resuming_another_run_is_refused(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    loader = train_loader()
    fit(model_for(loader), loader, None, settings(train_epochs=1), folder, config_digest="abc")
    with pytest.raises(CheckpointError, match=r"expected: configuration digest xyz\n  got:      abc"):
        fit(model_for(loader), loader, None, settings(), folder, config_digest="xyz", resume=True)
    other = train_loader(index_digest="index-b")
    with pytest.raises(StaleIndexError, match=r"expected: index digest index-b\n  got:      index-a"):
        fit(model_for(other), other, None, settings(), folder, config_digest="abc", resume=True)
    with pytest.raises(ConfigError, match="another shape"):
        fit(model_for(loader, hidden_size=9), loader, None, settings(), folder, config_digest="abc", resume=True)
    renamed = train_loader()
    renamed.x_names = renamed.x_names[::-1]
    with pytest.raises(CheckpointError, match="x_names differ"):
        fit(model_for(renamed), renamed, None, settings(), folder, config_digest="abc", resume=True)


def test_a_model_of_the_wrong_width_is_refused(tmp_path):
    loader = train_loader()
    other = FakeLoader(synthetic_datasets(inputs=3), WINDOW)
    with pytest.raises(ConfigError, match="does not fit the loader"):
        fit(model_for(other), loader, None, settings(), RunFolder.create(tmp_path / "run"))
