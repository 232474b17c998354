"""A small project and its index, for commands that read one."""

from pathlib import Path

import pytest

from build_here import build_here
from command_line import write_project
from headrace.schemas.config_io import load_config


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with project.yml, its stores and the index `index`; not to be written to."""
    folder = tmp_path_factory.mktemp("project")
    build_here(load_config(write_project(folder)), folder / "index")
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same in a folder of its own, which is the working directory."""
    folder = tmp_path / "project"
    build_here(load_config(write_project(folder)), folder / "index")
    monkeypatch.chdir(folder)
    return folder
