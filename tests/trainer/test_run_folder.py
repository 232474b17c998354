"""A run's folder is never shared by accident."""

import re
from dataclasses import replace

import pytest

from headrace.schemas.errors import ConfigError
from headrace.trainer.epochs import summarize
from headrace.trainer.run_folder import EPOCH_COLUMNS, EpochRow, RunFolder, read_csv
from tree import REPOSITORY


def row(epoch, valid_loss=0.5):
    return EpochRow(
        epoch=epoch, train_loss=0.1 + epoch, valid_loss=valid_loss, valid_nse_median=valid_loss, learning_rate=1e-3,
        samples_per_second=10.0, data_wait_seconds=0.0, compute_seconds=0.1, gpu_util_percent=None, seconds=1.0,
    )  # fmt: skip


def test_a_used_folder_is_refused_unless_opened(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_config("a: 1\n")
    assert folder.config.read_text() == "a: 1\n"
    with pytest.raises(ConfigError, match="already in use"):
        RunFolder.create(tmp_path / "run")
    assert RunFolder.open(tmp_path / "run") == folder


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="the run folder cannot be made") as caught:
        RunFolder.create(tmp_path / "file" / "run")
    assert str(tmp_path / "file" / "run") in str(caught.value)


def test_an_undefined_score_is_said_in_words():
    assert "valid NSE median 0.500" in summarize("epoch 1/1", row(0))
    assert "valid NSE undefined" in summarize("epoch 1/1", replace(row(0), valid_nse_median=None))


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="nothing there"):
        RunFolder.open(tmp_path / "run")
    with pytest.raises(ConfigError, match="an empty folder"):
        RunFolder.open(tmp_path)


def test_an_epochs_row_replaces_it_and_what_came_after(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    for epoch in (0, 1, 2, 1):
        folder.record_epoch(row(epoch))
    assert [r["epoch"] for r in read_csv(folder.metrics)] == ["0", "1"]


def test_no_validation_is_an_empty_cell(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.record_epoch(row(0, valid_loss=None))
    folder.record_epoch(row(1, valid_loss=None))
    rows = read_csv(folder.metrics)
    assert tuple(rows[0]) == EPOCH_COLUMNS
    assert [r["valid_loss"] for r in rows] == ["", ""]
    assert float(rows[0]["train_loss"]) == 0.1


def test_the_page_on_training_lists_the_columns_of_an_epoch():
    page = (REPOSITORY / "docs" / "training.md").read_text(encoding="utf-8")
    table = page.partition("a row per epoch in `metrics.csv`:")[2].partition("\n\n`--tensorboard`")[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, flags=re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"\w+", cell)] == list(EPOCH_COLUMNS)
