"""Folders of dead processes go with the next start; those of living ones, and of others, stay."""

import fcntl
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.private_folder import PrivateFolder
from headrace.schemas.errors import ConfigError

HOLD = """
import sys
from headrace.private_folder import PrivateFolder

print(PrivateFolder("index").path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_stays_while_its_process_lives_and_goes_once_it_was_killed(place: Path):
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout is not None
        theirs = Path(holder.stdout.readline().strip())
        (theirs / "table").write_text("x")
        PrivateFolder("build").remove()
        assert (theirs / "table").exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        PrivateFolder("check").remove()
        assert list(place.iterdir()) == []


def test_many_at_once_remove_only_what_is_dead(place: Path):
    for number in range(20):
        (place / f"headrace-index-{number:016x}").mkdir()
        (place / f"headrace-index-{number:016x}" / ".owner").write_text(platform.node())
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: PrivateFolder("index"), range(40)))
    assert {p.name for p in place.iterdir()} == {folder.path.name for folder in made}
    for folder in made:
        folder.remove()


def test_a_folder_that_a_kill_left_without_a_name_goes(place: Path):
    """Whether or not its owner's file was written; a young one may be about to get its name, a locked one as well."""
    unnamed = {name: place / f".headrace-new-{name}" for name in ("written", "empty", "bare", "young", "held")}
    for path in unnamed.values():
        path.mkdir()
    (unnamed["written"] / ".owner").write_text(platform.node())
    for name in ("empty", "held"):
        (unnamed[name] / ".owner").touch()
    for name in ("empty", "bare", "held"):
        os.utime(unnamed[name], (0, 0))
    with (unnamed["held"] / ".owner").open("r+") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        PrivateFolder("check").remove()
    assert set(place.iterdir()) == {unnamed["young"], unnamed["held"]}


def test_a_kill_while_a_folder_is_removed_leaves_what_the_next_start_removes(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = PrivateFolder("index")
    (folder.path / "table").write_text("x")
    (folder.path / "inner").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda path, **_: None)  # as far as a kill lets it come
        folder.remove()
    (left,) = place.iterdir()
    assert {p.name for p in left.iterdir()} == {".owner", "inner"}
    PrivateFolder("index").remove()
    assert list(place.iterdir()) == []


def test_what_is_not_known_to_be_left_over_stays(place: Path):
    """Other names, folders without an owner's file or of another machine, links, and the folder behind a link."""
    for name, machine in {"elsewhere": platform.node(), "headrace-index-fedcba9876543210": "another"}.items():
        (place / name).mkdir()
        (place / name / ".owner").write_text(machine)
    for name in ("headrace-index-mine", "headrace-notes-0123456789abcdef", "headrace-index-0123456789abcdef"):
        (place / name).mkdir()
    (place / "headrace-notes-0123456789abcdef" / ".owner").write_text(platform.node())
    os.symlink(place / "elsewhere", place / "headrace-check-0123456789abcdef")
    before = {p.name for p in place.rglob("*")}
    with PrivateFolder("build") as mine:
        assert mine.is_dir()
    assert {p.name for p in place.rglob("*")} == before


def test_a_place_that_takes_no_folder_is_said(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(place / "missing"))
    with pytest.raises(ConfigError, match=r"TMPDIR"):
        PrivateFolder("index")
