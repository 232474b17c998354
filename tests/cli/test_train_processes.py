"""`train` in processes of its own: killed and going on bit for bit; several at once with the model of one."""

import pytest
import torch

from command_line import run_headrace
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
EVERY_BATCH = ["--set", "train.checkpoint_seconds=1e-9"]
KILLED = {
    "lstm with dropout, steps of the learning rate and early stopping": (
        ["--set", "train.dropout=0.4", "--set", "train.learning_rate_schedule={1: 0.01, 2: 1.0e-12}", "--train-epochs",
         "9", "--set", "train.early_stopping_epochs=1", *EVERY_BATCH],
        [4, 9, 17],
    ),
    "ea-lstm with quantiles, cosine decay and warm-up": (
        ["--set", "train.model=ea_lstm", "--set", "train.loss=quantile", "--set", "train.dropout=0.2",
         "--set", "train.learning_rate_decay=cosine", "--set", "train.warmup_epochs=0.7", "--train-epochs", "2"],
        [14],
    ),
}  # fmt: skip


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
    for name, (settings, kills) in KILLED.items():
        jobs.append(new(f"whole {name}", *settings))
        for turn, batches in enumerate(kills):
            then = {"what": "kill", "batches": batches}
            if turn == 0:
                jobs.append(new(f"killed {name}", *settings, then=then))
            else:
                jobs.append(resume(f"killed again {turn} {name}", f"killed {name}", then=then))
        jobs.append(resume(f"last {name}", f"killed {name}"))
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
        new("starved", *DROPOUT, ranks=2, then={"what": "starve", "rank": 1, "batches": 2}),
        resume("starved again", "starved", ranks=2, then={"what": "starve", "rank": 0, "batches": 5}),
        resume("starved in validation", "starved", ranks=2, then={"what": "starve", "rank": 1, "batches": 4}),
        resume("starved to 2", "starved", ranks=2),
        new("seeds", *DROPOUT, "--train-epochs", "1", "--seeds", "4,5", ranks=2),
        new("diverged", *DROPOUT, "--set", "train.learning_rate=1e30", ranks=2),
        new("failed", *DROPOUT, "--set", "train.checkpoint_seconds=1e-9", ranks=2,
            then={"what": "fail", "rank": 1, "batches": 3}),
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
    assert "10 batches of 2 × 16 an epoch" in first.out
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


def test_ranks_of_which_one_waits_for_its_batch_stop_at_once_and_go_on_bit_for_bit(ran):
    """The others have theirs of that step and learn nothing from it: neither weights nor dropout's state move."""
    for name in ("starved", "starved again", "starved in validation"):
        assert codes(ran, name) == [130, 130], name
    assert codes(ran, "starved to 2") == [0, 0]
    assert epoch_results(ran[0] / "starved") == epoch_results(ran[0] / "whole")
    assert torch.equal(last_weights(ran[0] / "starved"), last_weights(ran[0] / "whole"))


def test_a_rank_that_fails_ends_the_others_and_leaves_the_checkpoint(ran):
    first, second = ran[1]["failed"]
    assert (first.code, second.code) == (1, 1)
    assert "another rank has ended or does not answer" in first.err
    assert second.err == "the disk is gone"
    assert load_checkpoint(ran[0] / "failed" / "checkpoints" / "last.pt").sums.num_batches == 2


def test_a_loss_that_is_not_finite_ends_all_ranks_with_the_reason(ran):
    assert codes(ran, "diverged") == [1, 1]
    for rank, outcome in enumerate(ran[1]["diverged"]):
        assert f"Error of process {rank} of 2: the loss is no longer finite" in outcome.err
        assert "a lower train.learning_rate" in outcome.err


def test_several_ranks_train_several_seeds(ran):
    assert codes(ran, "seeds") == [0, 0]
    first, second = ran[1]["seeds"]
    assert (second.out, second.err) == ("", "")
    assert "The best epoch of each seed" in first.out
    rows = [epoch_results(ran[0] / "seeds" / f"seed-{seed}") for seed in (4, 5)]
    assert [len(own) for own in rows] == [1, 1]
    assert rows[0] != rows[1]


def test_several_processes_build_no_index(built, tmp_path, monkeypatch):
    """Refused from the environment alone: none of them waits for another."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    outcome = run_headrace("train", "--config", built / "project.yml", "--index", tmp_path / "none",
                           "--run-dir", tmp_path / "run")  # fmt: skip
    assert outcome.code == 2
    assert f"build it first: headrace build-index CONFIG --out {tmp_path / 'none'}" in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", KILLED)
def test_a_run_killed_several_times_ends_as_one_that_was_not(ran, name):
    """Kill -9 in the middle of epochs: the same weights and rows, bit for bit. Without a checkpoint at every batch the
    epoch begins again.
    """
    (whole,), (last,) = ran[1][f"whole {name}"], ran[1][f"last {name}"]
    assert (whole.code, last.code) == (0, 0)
    assert not ran[1][f"killed {name}"], "it had no time to say anything"
    folders = [ran[0] / f"{kind} {name}" for kind in ("whole", "killed")]
    assert epoch_results(folders[0]) == epoch_results(folders[1])
    assert torch.equal(last_weights(folders[0]), last_weights(folders[1]))
    best = [next(t for t in one.out.splitlines() if t.startswith("Trained ")) for one in (whole, last)]
    assert best[0] == best[1]
    if "early stopping" in name:
        assert "where the loss stopped falling" in best[0]
        assert len(epoch_results(folders[0])) < 9
