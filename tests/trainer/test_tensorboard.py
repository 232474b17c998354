"""Scalars of an epoch go where TensorBoard looks for them; without the package nothing begins."""

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from fake_tensorboard import fake_tensorboard, no_tensorboard
from headrace.schemas.errors import ConfigError
from headrace.trainer.run_folder import EPOCH_COLUMNS, EpochRow
from headrace.trainer.tensorboard import _TAGS, TensorBoardLog, require_tensorboard
from tool_process import install

ROW = EpochRow(
    epoch=3, train_loss=0.5, valid_loss=0.75, valid_nse_median=0.25, learning_rate=1e-3, samples_per_second=1000.0,
    data_wait_seconds=0.1, compute_seconds=0.2, gpu_util_percent=None, seconds=9.0,
)  # fmt: skip
PACKAGES = [
    "tensorboard==2.21.0", "tensorboard-data-server", "absl-py", "grpcio", "markdown", "protobuf", "werkzeug",
]  # fmt: skip

REAL = """
import json, sys
from pathlib import Path
from headrace.trainer.run_folder import EpochRow
from headrace.trainer.tensorboard import TensorBoardLog
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
folder = Path(sys.argv[1])
row = json.loads(sys.argv[2])
for begin in (3, 4):  # a run that stopped in epoch 4 and goes on with it
    with TensorBoardLog(folder) as log:
        for epoch in (begin, begin + 1):
            log.write(EpochRow(**{**row, "epoch": epoch, "train_loss": begin + epoch / 10}))
found = EventAccumulator(str(folder))
found.Reload()
print(json.dumps({tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}))
"""


def test_every_number_of_a_row_has_a_tag():
    assert set(_TAGS) == set(EPOCH_COLUMNS) - {"epoch"}
    assert len(set(_TAGS.values())) == len(_TAGS)


def test_a_row_becomes_scalars_of_its_epoch_and_what_it_lacks_is_left_out(tmp_path):
    with fake_tensorboard() as writers:
        with TensorBoardLog(tmp_path / "tb") as log:
            assert not writers
            log.write(ROW)
            log.write(replace(ROW, epoch=4, valid_loss=None, gpu_util_percent=75.0))
            [writer] = writers
            assert writer.flushed
        assert writer.closed
    assert (writer.log_dir, writer.purge_step) == (str(tmp_path / "tb"), 3)
    first = {tag: value for tag, value, step in writer.scalars if step == 3}
    assert first == {tag: value for name, tag in _TAGS.items() if (value := asdict(ROW)[name]) is not None}
    second = {tag: value for tag, value, step in writer.scalars if step == 4}
    assert "loss/valid" not in second
    assert second["performance/avg_gpu_util_percent"] == 75.0


def test_a_missing_package_is_said_with_what_to_install():
    with no_tensorboard(), pytest.raises(ConfigError, match=r"pip install 'headrace\[tensorboard\]'"):
        require_tensorboard()


@pytest.mark.network
def test_tensorboard_itself_reads_what_was_written(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REAL, str(tmp_path / "tb"), json.dumps(asdict(ROW))],
        env={"PYTHONPATH": str(install(PACKAGES)), "PATH": "", "HOME": str(tmp_path)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == {tag for name, tag in _TAGS.items() if asdict(ROW)[name] is not None}
    assert found["loss/train"] == [[3, pytest.approx(3.3)], [4, pytest.approx(4.4)], [5, pytest.approx(4.5)]]
