"""One cache folder and two processes: at the same time, and after one was killed in the middle of a group."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

import cache_process
import headrace
from headrace.schemas.errors import ReadError
from joint_stores import Joint
from oracle_loader import OracleLoader, check_epoch


@pytest.fixture(scope="module")
def other(joint: Joint) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, cache_process.__file__, str(joint.index)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def say(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_two_processes_read_each_chunk_once_together(joint, other, tmp_path):
    oracle = OracleLoader(joint.config, "train")
    say(other, f"share {tmp_path}")
    with (
        headrace.open_index(joint.index) as index,
        headrace.WindowLoader(
            index, "train", batch_size=32, num_workers=1, memory_budget=2400, cache_dir=str(tmp_path), seed=1
        ) as loader,
    ):
        assert int(hear(other)) == loader.plan().num_rounds
        say(other, "go")
        check_epoch(list(loader), oracle, loader)
        read, served = map(int, hear(other).split())
        assert served == len(oracle.windows)
        assert read + loader.chunks_read == loader.serving.reads.chunks_needed


def test_a_process_killed_in_the_middle_of_a_group_leaves_nothing_half_done(joint, other, tmp_path):
    """The group that it was reading is taken over by a process that waits for it."""
    oracle = OracleLoader(joint.config, "train")
    say(other, f"hang {tmp_path}")
    assert hear(other) == "in the middle"
    with (
        headrace.open_index(joint.index) as index,
        headrace.WindowLoader(
            index,
            "train",
            batch_size=32,
            num_workers=1,
            memory_budget=2400,
            cache_dir=str(tmp_path),
            seed=1,
            timeout=0.3,
        ) as loader,
    ):
        with pytest.raises(ReadError, match="no batch in time"):
            list(loader)
        other.kill()
        loader.timeout = 60
        check_epoch(list(loader), oracle, loader)
        assert 0 < loader.chunks_read < loader.serving.reads.chunks_needed
