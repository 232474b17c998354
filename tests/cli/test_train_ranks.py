"""`train` in several processes: the model of one, whoever is interrupted or fails, and rank 0 alone speaks."""

import pytest
import torch

from headrace.trainer.checkpoint import load_checkpoint
from training_jobs import epoch_results, last_weights, run_jobs

pytestmark = pytest.mark.slow

KEEP = ["--target-nan-policy", "keep", "--set", "train.dropout=0", "--train-epochs", "2"]
ALIKE = {
    "rmse, lstm": ["--set", "train.loss=rmse", "--set", "train.learning_rate_decay=cosine"],
    "quantile, ea-lstm": ["--set", "train.loss=quantile", "--set", "train.model=ea_lstm", "--set",
                          "train.clip_gradient_norm=0.05"],
}  # fmt: skip
STILL = [*KEEP, "--batch-size", "16", "--train-epochs", "1", "--set", "train.learning_rate=1e-12"]
DROPOUT = ["--batch-size", "16", "--set", "train.dropout=0.4", "--train-epochs", "2"]


@pytest.fixture(scope="module")
def ran(built, tmp_path_factory):
    """The folder of all runs, and what the processes said."""
    folder = tmp_path_factory.mktemp("ranks")

    def new(name, *settings, **job):
        arguments = ["--index", str(built / "index"), "--run-dir", str(folder / name), *settings]
        return {"name": name, "arguments": arguments, **job}

    def resume(name, run, **job):
        return {"name": name, "arguments": ["--resume", "--run-dir", str(folder / run)], **job}

    jobs = []
    for name, settings in ALIKE.items():
        jobs.append(new(f"one {name}", *KEEP, *settings, "--batch-size", "32"))
        jobs.append(new(f"two {name}", *KEEP, *settings, "--batch-size", "16", ranks=2))
    stop = {"what": "interrupt", "rank": 1, "batches": 5}
    jobs += [
        new("unmoved", *STILL),
        new("moved", *STILL, ranks=2, then=stop),
        resume("moved to 3", "moved", ranks=3, then={"what": "interrupt", "rank": 2, "batches": 4}),
        resume("moved to 1", "moved"),
        new("whole", *DROPOUT, ranks=2),
        new("stopped", *DROPOUT, ranks=2, then={"what": "interrupt", "rank": 0, "batches": 12}),
        resume("stopped to 2", "stopped", ranks=2),
        new("failed", *DROPOUT, "--set", "train.checkpoint_seconds=1e-9", ranks=2,
            then={"what": "fail", "rank": 1, "batches": 3}),
        {"name": "no index", "arguments": ["--config", str(built / "project.yml"), "--index", str(folder / "none"),
                                           "--run-dir", str(folder / "no index")], "ranks": 2},
    ]  # fmt: skip
    return folder, run_jobs(jobs, folder).outcomes


def codes(ran, name):
    return [outcome.code for outcome in ran[1][name]]


@pytest.mark.parametrize("name", ALIKE)
def test_two_ranks_train_the_model_of_one_with_the_same_global_batch(ran, name):
    """Also where targets are missing, so that the ranks' halves of a batch hold different numbers of them."""
    one, two = ran[0] / f"one {name}", ran[0] / f"two {name}"
    assert codes(ran, f"one {name}") == [0]
    assert codes(ran, f"two {name}") == [0, 0]
    torch.testing.assert_close(last_weights(two), last_weights(one), rtol=1e-4, atol=1e-6)
    for ours, theirs in zip(epoch_results(two), epoch_results(one), strict=True):
        for column in ours:
            assert float(ours[column]) == pytest.approx(float(theirs[column]), rel=1e-4), column
    moved = load_checkpoint(one / "checkpoints" / "last.pt").model
    assert all(torch.isfinite(value).all() for value in moved.values())


def test_rank_0_alone_prints_and_writes(ran):
    first, second = ran[1]["two rmse, lstm"]
    assert "on cpu, 2 processes" in first.out
    assert "Trained 2 epochs" in first.out
    assert "epoch 2/2" in first.err
    assert (second.out, second.err) == ("", "")


def test_ctrl_c_of_any_rank_stops_all_after_the_same_batch(ran):
    """The interrupted rank tells the others with the next batch's sums."""
    assert codes(ran, "moved") == [130, 130]
    first, second = ran[1]["moved"]
    assert f"headrace train --resume --run-dir {ran[0] / 'moved'}" in first.err
    assert second.err == ""


def test_a_run_goes_on_with_other_numbers_of_ranks(ran):
    """2, then 3, then 1 process: where no weight moves the epoch has the loss of its windows, each of them once."""
    assert codes(ran, "moved to 3") == [130, 130, 130]
    assert codes(ran, "moved to 1") == [0]
    (moved,), (unmoved,) = epoch_results(ran[0] / "moved"), epoch_results(ran[0] / "unmoved")
    for name in ("epoch", "train_loss", "valid_loss", "valid_nse_median"):
        assert float(moved[name]) == pytest.approx(float(unmoved[name]), rel=1e-5), name


def test_a_stopped_run_of_two_ranks_goes_on_bit_for_bit(ran):
    """Each rank has the state of its own dropout back."""
    assert codes(ran, "stopped") == [130, 130]
    assert codes(ran, "stopped to 2") == [0, 0]
    assert epoch_results(ran[0] / "stopped") == epoch_results(ran[0] / "whole")
    assert torch.equal(last_weights(ran[0] / "stopped"), last_weights(ran[0] / "whole"))


def test_a_rank_that_fails_ends_the_others_and_leaves_the_checkpoint(ran):
    first, second = ran[1]["failed"]
    assert (first.code, second.code) == (1, 1)
    assert "another rank has ended or does not answer" in first.err
    assert second.err == "the disk is gone"
    assert load_checkpoint(ran[0] / "failed" / "checkpoints" / "last.pt").sums.num_batches == 2


def test_several_processes_build_no_index(ran):
    assert codes(ran, "no index") == [2, 2]
    assert "build it first: headrace build-index" in ran[1]["no index"][0].err
    assert not (ran[0] / "none").exists()
