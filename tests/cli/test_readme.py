"""What the README tells people to type does what it says, on two small data sets."""

import contextlib
import re
import shlex
from pathlib import Path

import pytest

from command_line import run_headrace, write_project
from tree import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with stores and ``basins.yml``, in which the commands of the README have been run."""
    folder = tmp_path_factory.mktemp("readme")
    write_project(folder).rename(folder / "basins.yml")
    commands = [line.strip() for line in re.findall(r"^    (headrace .*)$", README, flags=re.MULTILINE)]
    assert [c.split()[1] for c in commands] == ["check", "build-index", "inspect", "train", "evaluate", "report"]
    with contextlib.chdir(folder):
        for command in commands:
            done = run_headrace(*shlex.split(command, comments=True)[1:])
            assert done.code == 0, f"{command}\n{done.err}"
    return folder


def test_the_commands_leave_what_the_readme_names(project: Path) -> None:
    assert (project / "index" / "manifest.json").exists()
    evaluation = project / "runs" / "first" / "evaluation" / "test"
    assert (evaluation / "metrics.csv").exists()
    assert (evaluation / "predictions.zarr").is_dir()
    assert list((evaluation / "plots").glob("*.png"))
    assert "Best: " in (project / "first.html").read_text(encoding="utf-8")


def test_the_python_example_runs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    monkeypatch.chdir(project)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    state = names["state"]
    assert isinstance(state, dict)
    assert state["windows_consumed"] > 0


def test_every_local_link_leads_somewhere() -> None:
    pages = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").rglob("*.md")]
    broken = [
        (page.name, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken
