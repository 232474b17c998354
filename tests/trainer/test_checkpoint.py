"""What is no checkpoint is refused with the reason, and a kill while writing leaves the old one."""

import pickle

import pytest
import torch

from headrace.trainer.checkpoint import (
    Checkpoint,
    CheckpointError,
    EpochSums,
    load_checkpoint,
    load_model,
    save_checkpoint,
)
from headrace.trainer.model import build_model
from headrace.trainer.model_config import ModelConfig


@pytest.fixture
def checkpoint():
    config = ModelConfig(num_inputs=2, num_statics=1, hidden_size=3, num_targets=1, dropout=0.1)
    model = build_model(config, seed=0)
    return Checkpoint(
        model_config=config, x_names=["p", "t"], static_names=["area"], y_names=["q"], target_length=1,
        model=model.state_dict(), optimizer=torch.optim.Adam(model.parameters()).state_dict(),
        scaler={}, rng=[{"cpu": torch.get_rng_state(), "cuda": []}], epoch=4,
        sums=EpochSums(error_sum=1.5, weight_sum=7.0, num_windows=8, num_batches=2),
        epoch_trained=False, loader_state={"epoch": 4, "windows_consumed": 8, "seed": 2**63},
        best_metric=0.25, best_epoch=3, config_digest="c", index_digest="i",
    )  # fmt: skip


def test_what_is_saved_comes_back(tmp_path, checkpoint):
    save_checkpoint(tmp_path / "last.pt", checkpoint)
    loaded = load_checkpoint(tmp_path / "last.pt")
    for name in ("model_config", "x_names", "epoch", "sums", "loader_state", "best_metric", "config_digest"):
        assert getattr(loaded, name) == getattr(checkpoint, name)
    assert torch.equal(loaded.rng[0]["cpu"], checkpoint.rng[0]["cpu"])
    assert all(torch.equal(loaded.model[name], value) for name, value in checkpoint.model.items())
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


def test_the_model_is_built_from_the_file_alone(tmp_path, checkpoint):
    save_checkpoint(tmp_path / "best.pt", checkpoint)
    model, loaded = load_model(tmp_path / "best.pt")
    assert not model.training
    assert torch.equal(model.head.weight, checkpoint.model["head.weight"])
    assert loaded.y_names == ["q"]


def test_a_failed_write_leaves_the_old_file(tmp_path, checkpoint, monkeypatch):
    save_checkpoint(tmp_path / "last.pt", checkpoint)
    before = (tmp_path / "last.pt").read_bytes()

    def half(content, path):
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(OSError, match="no space left"):
        save_checkpoint(tmp_path / "last.pt", checkpoint)
    assert (tmp_path / "last.pt").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"(?s)there is no checkpoint.*last\.pt.*to fix"):
        load_checkpoint(tmp_path / "last.pt")


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", pickle.dumps({"format": "x"})])
def test_a_file_that_is_not_torchs_is_refused(tmp_path, content):
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match="no Headrace checkpoint"):
        load_checkpoint(tmp_path / "x.pt")


def test_a_file_that_would_run_code_is_refused(tmp_path):
    torch.save({"format": "headrace-checkpoint", "model": torch.nn.Linear(1, 1)}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="cannot read as plain tensors"):
        load_checkpoint(tmp_path / "x.pt")


def test_a_torch_file_of_another_kind_is_refused(tmp_path):
    torch.save({"state_dict": {}}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="torch file of another kind"):
        load_checkpoint(tmp_path / "x.pt")


def test_another_version_is_refused(tmp_path):
    torch.save({"format": "headrace-checkpoint", "version": 99, "content": {}}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"expected: version 2\n  got:      version 99"):
        load_checkpoint(tmp_path / "x.pt")


def test_a_checkpoint_error_is_a_configuration_error():
    assert CheckpointError.exit_code == 2
