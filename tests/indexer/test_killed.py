"""Whatever is killed, the same command finishes, scans again only what was in flight, and gives the same bytes."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import slow_build
from dask_processes import wait_for_files
from headrace.indexer import build_index, units
from headrace.schemas.config_io import dump_config
from headrace.schemas.errors import ConfigError
from indexing import build_inline, config, dataset, table_bytes
from synthetic import write_store

pytestmark = pytest.mark.slow
NUM_UNITS = 36
"""Two variables × three basin chunks × six time chunks."""


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "MIN_BIN_STEPS", 1)
    monkeypatch.setattr(units, "TASK_UNITS", 2)
    store = write_store(tmp_path / "s.zarr", basins=6, steps=60, chunks=(2, 10))
    return config({"a": dataset(store)})


@pytest.fixture
def undisturbed(settings, tmp_path, monkeypatch):
    build_inline(settings, tmp_path / "undisturbed", monkeypatch)
    return tmp_path / "undisturbed"


class Build:
    """The command as a process of its own."""

    def __init__(self, settings, folder: Path, *options: str, seconds: float = 0.03, limit: int | None = None) -> None:
        (folder / "c.yaml").write_text(dump_config(settings))
        self.out, self.log = folder / "i", folder / "units.log"
        program = [sys.executable, "-P", slow_build.__file__, str(self.log), str(seconds)]
        command = ["build-index", str(folder / "c.yaml"), "--out", str(self.out), *options]
        self.process = subprocess.Popen(
            [*program, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )

    def wait_for_parts(self, count: int) -> None:
        wait_for_files(self.out / "parts", "*.parquet", count)

    def scanned(self) -> list[tuple[int, str]]:
        """Return (process, unit) of every scan that began."""
        lines = self.log.read_text().splitlines()
        return [(int(pid), key) for pid, key in (line.split() for line in lines)]

    def finish(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err


def finished_keys(out: Path) -> set[str]:
    return {key for path in (out / "parts").glob("*.parquet") for key in pq.read_table(path)["key"].to_pylist()}


def parts(out: Path) -> set[str]:
    return {p.name for p in (out / "parts").iterdir()}


@pytest.mark.parametrize(("workers", "moments"), [(0, (1, 14)), (2, (6,))])
def test_client_killed_again_and_again_loses_only_what_was_in_flight(settings, tmp_path, undisturbed, workers, moments):
    """F4: kill -9 early, halfway and late, then the command in threads; with processes to its end: the test below."""
    options = ("--workers", str(workers)) if workers else ()
    for count in moments:
        build = Build(settings, tmp_path, *options)
        build.wait_for_parts(count)
        os.killpg(build.process.pid, signal.SIGKILL)
        build.process.communicate()
        assert not (build.out / "manifest.json").exists()
    kept = finished_keys(build.out)
    before = Counter(key for _, key in build.scanned())
    again = Build(settings, tmp_path, seconds=0)
    assert again.finish()[0] == 0
    after = Counter(key for _, key in again.scanned())
    assert {key for key in after if after[key] > before[key]} == set(after) - kept
    assert len(after) == NUM_UNITS
    assert table_bytes(again.out) == table_bytes(undisturbed)
    assert parts(again.out) == parts(undisturbed)


def test_death_of_a_worker_is_survived_without_a_restart(settings, tmp_path, undisturbed):
    """F4: its tasks run elsewhere; the others are not run again."""
    build = Build(settings, tmp_path, "--workers", "2", seconds=0.1)
    build.wait_for_parts(3)
    done = finished_keys(build.out)
    victim = build.scanned()[-1][0]
    assert victim != build.process.pid
    os.kill(victim, signal.SIGKILL)
    # Its last two tasks of two units: one was in flight, of the other it may have written the part and told nobody yet.
    untold = set([key for pid, key in build.scanned() if pid == victim][-2 * 2 :])
    code, said = build.finish()
    assert code == 0, said
    assert "Traceback" not in said
    times = Counter(key for _, key in build.scanned())
    assert len(times) == NUM_UNITS
    assert done - untold
    assert all(times[key] == 1 for key in done - untold)
    assert 0 < sum(times.values()) - NUM_UNITS <= 2 * 2
    assert table_bytes(build.out) == table_bytes(undisturbed)
    assert parts(build.out) == parts(undisturbed)


@pytest.mark.parametrize("workers", [0, 2])
def test_interrupted_command_says_how_to_go_on_and_leaves_130_and_no_index(settings, tmp_path, undisturbed, workers):
    build = Build(settings, tmp_path, *(("--workers", str(workers)) if workers else ()))
    build.wait_for_parts(2)
    os.killpg(build.process.pid, signal.SIGINT)
    code, said = build.finish()
    assert code == 130, said
    told = re.search(r"stopped: (\d+) of 36 units are kept; run the same command again to go on", said)
    assert told, said
    assert 4 <= int(told[1]) <= len(finished_keys(build.out))
    assert "Traceback" not in said
    assert not (build.out / "manifest.json").exists()
    report = build_index(settings, build.out)
    assert report.scan.units_kept >= 4
    assert table_bytes(build.out) == table_bytes(undisturbed)


@pytest.mark.parametrize("workers", [0, 2])
def test_impatience_is_answered_without_a_traceback(settings, tmp_path, workers):
    """Ctrl-C three times in a row, while the first one is still closing what ran."""
    build = Build(settings, tmp_path, *(("--workers", str(workers)) if workers else ()), seconds=0.2)
    build.wait_for_parts(1)
    for _ in range(3):
        if build.process.poll() is None:
            os.killpg(build.process.pid, signal.SIGINT)
        time.sleep(0.05)
    code, said = build.finish()
    assert code == 130, said
    assert "Stopped" in said
    assert not any(noise in said for noise in ("Traceback", "Exception ignored", "Warning")), said


@pytest.mark.parametrize("limit", [2000, 6000])
def test_full_disk_is_said_in_words_and_what_is_whole_is_kept(settings, tmp_path, undisturbed, limit):
    """A limit on the size of files stops a part, or a table, where a full disk would."""
    build = Build(settings, tmp_path, seconds=0, limit=limit)
    code, said = build.finish()
    assert code == 2, said
    assert "index cannot be written" in said
    assert "File too large" in said
    assert "what is scanned so far is kept" in said
    assert "Traceback" not in said
    assert not (build.out / "manifest.json").exists()
    assert not list(build.out.rglob("*.tmp"))
    build_index(settings, build.out)
    assert table_bytes(build.out) == table_bytes(undisturbed)


def test_output_that_becomes_read_only_is_said_in_words(settings, tmp_path, monkeypatch):
    """A disk that the system has put to read-only: every new file is refused, as root too."""
    original = Path.open

    def refuse(path, mode="r", *rest, **options):
        if "w" in mode and path.name.endswith(".tmp"):
            raise OSError(30, os.strerror(30), str(path))
        return original(path, mode, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        with pytest.raises(ConfigError, match="index cannot be written") as caught:
            build_inline(settings, tmp_path / "i", monkeypatch)
    assert "Read-only file system" in str(caught.value)
    assert not (tmp_path / "i").exists()


def test_second_build_into_the_same_folder_is_refused_and_disturbs_nothing(settings, tmp_path, undisturbed):
    first = Build(settings, tmp_path, seconds=0.05)
    first.wait_for_parts(1)
    with pytest.raises(ConfigError, match="another build works in this folder"):
        build_index(settings, first.out)
    assert first.finish()[0] == 0
    assert table_bytes(first.out) == table_bytes(undisturbed)
