"""`bench` reports every field, each of them true of what was served, and says what to do about a wait."""

import json
import math
from pathlib import Path

import pytest

from command_line import Outcome, run_headrace
from tree import REPOSITORY

FIELDS = {
    "samples_per_second", "avg_dataloader_wait_seconds", "avg_compute_seconds", "first_batch_seconds", "steps",
    "windows", "bytes_read", "chunks_read", "storage_requests", "storage_retries", "storage_throttles",
    "read_amplification", "spill_bytes", "peak_rss_bytes", "num_windows",
}  # fmt: skip
TRAIN_WINDOWS = {"one": 3 * 75, "two": 2 * 45}
"""Windows of 6 days in the training periods of 80 and 50 days."""


def bench(built: Path, *arguments: str) -> Outcome:
    outcome = run_headrace("bench", "--index", built / "index", "--device", "cpu", *arguments)
    assert outcome.code == 0, outcome.err
    return outcome


def row_of(built: Path, *arguments: str) -> dict:
    return json.loads(bench(built, "--json", *arguments).out)


def stored_nbytes(built: Path) -> int:
    """Bytes of the chunks that the training periods touch: two of three time chunks of `one`, the only one of `two`."""
    one = [
        built / "one_timeseries.zarr" / name / f"{b}.{t}"
        for name in ("rain", "temp", "flow")
        for b in (0, 1)
        for t in (0, 1)
    ]
    two = [built / "two_timeseries.zarr" / name / "c" / "0" / "0" for name in ("P", "T", "Q")]
    return sum(path.stat().st_size for path in [*one, *two])


def test_every_field_is_there_and_plausible(built):
    # 315 windows: the whole first epoch and a part of the second.
    row = row_of(built, "--steps", "12")
    assert row.keys() >= FIELDS | {
        "settings",
        "versions",
        "hardware",
        "shuffle_quality",
        "advice",
        "avg_gpu_util_percent",
    }
    assert all(math.isfinite(row[name]) for name in FIELDS)
    assert row["avg_gpu_util_percent"] is None
    assert row["num_windows"] == sum(TRAIN_WINDOWS.values())
    assert row["steps"] == 12
    assert row["windows"] == 315 + 2 * 32
    assert row["bytes_read"] == stored_nbytes(built)
    assert row["chunks_read"] == 15
    assert row["read_amplification"] == 1.0
    assert row["spill_bytes"] == 0
    assert row["avg_compute_seconds"] == 0.0
    assert row["samples_per_second"] == pytest.approx(row["windows"] / (12 * row["avg_dataloader_wait_seconds"]))
    assert 0 < row["avg_dataloader_wait_seconds"] < row["first_batch_seconds"]
    assert 10**7 < row["peak_rss_bytes"] < row["hardware"]["memory_bytes"]
    assert row["settings"]["normalization"] == "none"
    assert row["settings"]["target_nan_policy"] == "keep"


def test_shuffle_quality_is_of_the_epoch_that_was_timed(built):
    quality = row_of(built, "--steps", "2")["shuffle_quality"]
    assert quality["epoch"] == 0
    assert 1 <= quality["distinct_basins"] <= 5
    assert quality["distinct_basins_perfect"] == pytest.approx(5, abs=0.5)
    assert [tenth["tenth"] for tenth in quality["by_tenth"]] == list(range(1, len(quality["by_tenth"]) + 1))


@pytest.mark.parametrize(
    ("arguments", "setting", "value", "windows"),
    [
        (["--valid-target-filter"], "target_nan_policy", "drop_any_nan", 315 - 5),
        (["--normalization", "standard"], "normalization", "standard", 315),
        (["--max-basins", "1"], "max_basins", 1, 75 + 45),
        (["--dataset-id", "two"], "datasets", ["two"], 90),
        (["--split", "test"], "split", "test", 3 * 20 + 2 * 10),
        (["--batch-size", "8"], "batch_size", 8, 315),
        (["--num-workers", "2"], "num_workers", 2, 315),
        (["--memory-budget", "1MB"], "memory_budget_bytes", 10**6, 315),
        (["--seed", "7"], "seed", 7, 315),
        (["--set", "window.stride=5"], "datasets", ["one", "two"], 3 * 15 + 2 * 9),
    ],
)
def test_a_flag_reaches_the_loader_and_the_row(built, arguments, setting, value, windows):
    row = row_of(built, "--steps", "1", *arguments)
    assert row["settings"][setting] == value
    assert row["num_windows"] == windows
    assert row["windows"] == row["settings"]["batch_size"]


def test_a_training_step_counts_as_compute(built):
    row = row_of(built, "--steps", "3", "--hidden-size", "4")
    assert row["settings"]["hidden_size"] == 4
    assert row["avg_compute_seconds"] > 0
    total = row["avg_compute_seconds"] + row["avg_dataloader_wait_seconds"]
    assert row["samples_per_second"] == pytest.approx(row["windows"] / (3 * total))


def test_the_table_fits_a_terminal_and_ends_with_advice(built):
    out = bench(built, "--steps", "2", "--prefetch-factor", "2", "--cuda-prefetch").out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    for words in (
        "windows per second",
        "data wait per batch",
        "read amplification",
        "time chunks",
        "entropy of basins",
    ):
        assert words in out
    assert "--cuda-prefetch: batches stay on the CPU, so nothing is copied ahead." in lines
    assert "Data wait exceeds compute" in out.partition("--cuda-prefetch")[2]


def test_the_file_holds_the_row_that_json_prints(built, tmp_path):
    out = tmp_path / "bench.json"
    row = row_of(built, "--steps", "1", "--json-out", str(out))
    assert json.loads(out.read_text(encoding="utf-8")) == row


def test_a_configuration_alone_builds_its_index_first(project):
    (project / "index").rename(project / "moved")
    outcome = run_headrace("bench", "--dataset-config", "project.yml", "--steps", "1", "--json")
    assert outcome.code == 0, outcome.err
    folder = Path(json.loads(outcome.out)["settings"]["index"])
    assert folder.parent.name == "indexes"
    assert (folder / "manifest.json").exists()


def test_every_command_of_the_page_runs(project, monkeypatch):
    page = (REPOSITORY / "docs" / "bench.md").read_text(encoding="utf-8")
    commands = [line.strip() for line in page.splitlines() if line.startswith("    headrace bench ")]
    assert len(commands) == 5
    (project / "project.yml").rename(project / "basins.yml")
    for command in commands:
        # The width of the page's model would only take time.
        words = ["4" if word == "256" else word for word in command.split()]
        outcome = run_headrace(*words[1:], "--device", "cpu")
        assert outcome.code == 0, f"{command}\n{outcome.err}"
    assert json.loads((project / "bench.json").read_text(encoding="utf-8"))["steps"] == 20


def test_the_page_names_every_field(built):
    page = (REPOSITORY / "docs" / "bench.md").read_text(encoding="utf-8")
    assert [field for field in row_of(built, "--steps", "1") if f"`{field}`" not in page] == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "--index DIR, --dataset-config FILE, or --dataset-id ID"),
        (["--index", "index", "--source", "cloud"], 2, "a store does not lie where --source says"),
        (["--index", "index", "--dataset-id", "three"], 2, "three"),
        (["--index", "nowhere"], 3, "nowhere"),
        (["--index", "index", "--json-out", "no/folder/bench.json"], 2, "no/folder/bench.json"),
    ],
)
def test_bad_input_has_the_exit_code_of_its_kind(built, monkeypatch, arguments, code, words):
    monkeypatch.chdir(built)
    outcome = run_headrace("bench", *arguments)
    assert outcome.code == code
    assert words in outcome.err
