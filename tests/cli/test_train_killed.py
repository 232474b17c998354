"""Kill -9 in the middle of epochs, `--resume`, and the run ends as one that was never killed: bit for bit."""

import pytest
import torch

from training_jobs import epoch_results, last_weights, run_jobs

pytestmark = pytest.mark.slow

EVERY_BATCH = ["--set", "train.checkpoint_seconds=1e-9"]
VARIANTS = {
    "lstm with dropout and steps of the learning rate": (
        ["--set", "train.dropout=0.4", "--set", "train.learning_rate_schedule={1: 0.01, 2: 0.002}", *EVERY_BATCH],
        [4, 9, 10],
    ),
    "ea-lstm with quantiles, cosine decay and warm-up": (
        ["--set", "train.model=ea_lstm", "--set", "train.loss=quantile", "--set", "train.dropout=0.2",
         "--set", "train.learning_rate_decay=cosine", "--set", "train.warmup_epochs=0.7", *EVERY_BATCH],
        [5, 12],
    ),
    "early stopping, checkpoints between epochs only": (
        ["--set", "train.early_stopping_epochs=1", "--set", "train.learning_rate=1e-9", "--train-epochs", "9"],
        [14, 3],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(built, tmp_path_factory):
    """Per variant the folders of a run that was never killed and of one that was, and what the processes said."""
    folder = tmp_path_factory.mktemp("killed")
    jobs, found = [], {}
    for number, (name, (settings, kills)) in enumerate(VARIANTS.items()):
        whole, killed = folder / f"whole-{number}", folder / f"killed-{number}"
        first = ["--index", str(built / "index"), "--train-epochs", "3", "--run-dir"]
        resume = ["--resume", "--run-dir", str(killed)]
        jobs.append({"name": f"whole-{number}", "arguments": [*first, str(whole), *settings]})
        for turn, batches in enumerate(kills):
            arguments = [*first, str(killed), *settings] if turn == 0 else resume
            then = {"what": "kill", "batches": batches}
            jobs.append({"name": f"killed-{number}-{turn}", "arguments": arguments, "then": then})
        jobs.append({"name": f"last-{number}", "arguments": resume})
        found[name] = (whole, killed, number)
    return found, run_jobs(jobs, folder).outcomes


@pytest.mark.parametrize("name", VARIANTS)
def test_a_run_killed_several_times_ends_as_one_that_was_not(runs, name):
    (whole, killed, number), outcomes = runs[0][name], runs[1]
    assert [outcomes[f"{job}-{number}"][0].code for job in ("whole", "last")] == [0, 0]
    assert not outcomes[f"killed-{number}-0"], "it had no time to say anything"
    assert epoch_results(killed) == epoch_results(whole)
    assert torch.equal(last_weights(killed), last_weights(whole))
    said = [outcomes[f"{job}-{number}"][0].out.splitlines() for job in ("whole", "last")]
    best = [next(line for line in lines if line.startswith("Trained ")) for lines in said]
    assert best[0] == best[1]
    if "early stopping" in name:
        assert "where the loss stopped falling" in best[0]
        assert len(epoch_results(whole)) < 9
